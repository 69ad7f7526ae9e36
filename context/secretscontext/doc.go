// Package secretscontext knows the secret values that were read in a reconciliation, and takes them
// out of what people read of it.
//
// The framework gives every reconciliation, and every plan, a [Vocabulary], and scrubs with it the
// errors, the messages of framework.Logger and of loggers of operator/logging, the events, the
// records and the plans. What is known by itself:
//
//   - a primary that is a Secret, or that says it is sensitive (plan.Confidential);
//   - Secrets that are read through an informer.Reader, or sent or received by the clients of
//     operator.Dependencies with the context of the reconciliation;
//   - what the ready-made resources read and write that is sensitive.
//
// An author adds other values, and scrubs what is shown in other ways:
//
//	password, err := vault.Read(ctx, path)
//	secretscontext.Add(ctx, password)
//	...
//	framework.Recorder(ctx, d.Recorder).Event(obj, "Warning", "LoginFailed", err.Error())
//	site.Status.LastAnswer = secretscontext.Scrub(ctx, answer)
//
// # What is found
//
// A value of at least [MinLength] bytes is found anywhere in a text as it is and in base64, padded
// or not, with or without the space around it. A value that is a part of the name or the namespace
// of the object that is reconciled is not secret. What is logged as a pair is looked at as its text
// and as its JSON, which has what pointers lead to; so are the pairs of With, when the line is
// written.
//
// # What is not
//
//   - Values of less than MinLength bytes: they would be found everywhere.
//   - Other forms of a value: as a URL, JSON or %q escapes it, in hexadecimal, or as the list of
//     its bytes, which is how fmt writes a []byte and %v a Secret. Print names, not objects.
//   - Parts of a value: a line of it, the password in a URL, the token in a kubeconfig. Add them.
//   - What is computed of a value, such as its hash. Let the state that holds it be a
//     plan.Confidential, or its resource sensitive.
//   - Words that an author gives to people directly, such as a field of a status or a webhook:
//     Scrub them. Events are scrubbed by framework.Recorder, and the messages in a status by the
//     status resource (package statusresource).
//   - A value in an object that is no Secret, such as a ConfigMap that an author fills with it, once
//     it is in the cluster: another reconciliation, which does not read the Secret, does not know
//     it. Put it into a Secret.
//   - What was logged, or said by an event, before the value was known. Records and plans are
//     scrubbed when they are complete.
//   - What is logged past the context: fmt.Println, a logger of another library, or micrologger's
//     own Log, which knows no context.
//   - What is read without a context, as by Get of an informer.Source: Add it, or read through an
//     informer.Reader.
//
// Beyond [MaxSize] bytes of values in one reconciliation nothing more is remembered, and no text is
// shown at all: [Withheld] stands in its place.
package secretscontext
