// Package secretscontext knows the secret values that were read in a reconciliation, and takes them out of what people read of it.
//
// The framework gives every reconciliation, and every plan, a [Vocabulary], and scrubs with it the errors, the messages of
// framework.Logger and of loggers of operator/logging, the events, the records and the plans. What is known of by itself:
//
//   - a primary that is a Secret, or that says it is sensitive (plan.Confidential);
//   - Secrets that are read through an informer.Reader, or sent or received by the clients of operator.Dependencies with the context
//     of the reconciliation;
//   - what the ready-made resources read and write that is sensitive.
//
// Whatever else an author reads he adds himself, and what he shows by other ways he scrubs himself:
//
//	password, err := vault.Read(ctx, path)
//	secretscontext.Add(ctx, password)
//	...
//	framework.Recorder(ctx, d.Recorder).Event(obj, "Warning", "LoginFailed", err.Error())
//	site.Status.LastAnswer = secretscontext.Scrub(ctx, answer)
//
// # What is found
//
// A value of at least [MinLength] bytes is found anywhere in a text: as it is, quoted (as by %q and JSON), in URLs, in hexadecimal,
// in base64 (standard and for URLs, padded or not, and in the middle of a longer one), and as the list of its bytes, which is how fmt
// writes a []byte. So are its parts: the strings of a JSON value, the lines of a text, what follows "name:" or "name=" in a line, and the
// password of a URL. Where a text was cut, which is where it has a "…", the beginning of a value is found. What a kubeconfig is called by (name, cluster, user, server and the like) is no such part.
// A value that is a part of the name or the namespace of the object that is reconciled is not secret. What is logged as a pair is looked
// at as its text and as its JSON, which has what pointers lead to; so are the pairs of With, when the line is written.
//
// # What is not
//
//   - Values of less than MinLength bytes: they would be found everywhere.
//   - What is computed of a value: its hash, its first half, a base64 of its base64. Let the state that holds it be a plan.Confidential, or
//     its resource sensitive.
//   - Words that an author gives to people directly, such as a field of a status or a webhook of his own: Scrub them. Events are scrubbed by
//     framework.Recorder, and the messages in a status by the status resource (package statusresource).
//   - A value in an object that is no Secret, such as a ConfigMap that an author fills with it, once it is in the cluster: another
//     reconciliation, that does not read the Secret, does not know it. Put it into a Secret.
//   - What was logged, or told by an event, before the value was known. Records and plans are scrubbed when they are complete.
//   - What is logged past the context: fmt.Println, a logger of another library, or micrologger's own Log, which knows no context.
//   - What is read without a context, as by Get of an informer.Source: Add it, or read through an informer.Reader.
//
// Beyond [MaxSize] bytes of values in one reconciliation nothing more is remembered, and no text is shown at all: [Withheld]
// stands in its place.
package secretscontext
