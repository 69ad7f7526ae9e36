// Package secretscontext records the secret values that were read in a reconciliation, and removes
// them from output.
//
// The framework gives every reconciliation, and every plan, a [Vocabulary]. With it, it scrubs the
// errors, the messages of framework.Logger and of loggers of operator/logging, the events, the
// records and the plans. These values are added automatically:
//
//   - a primary that is a Secret, or that says it is sensitive (plan.Confidential);
//   - Secrets that are read through an informer.Reader, or sent or received by the clients of
//     operator.Dependencies with the context of the reconciliation;
//   - sensitive objects that the ready-made resources read and write.
//
// An author adds other values, and scrubs other output:
//
//	password, err := vault.Read(ctx, path)
//	secretscontext.Add(ctx, password)
//	...
//	framework.Recorder(ctx, d.Recorder).Event(obj, "Warning", "LoginFailed", err.Error())
//	site.Status.LastAnswer = secretscontext.Scrub(ctx, answer)
//
// # What is found
//
// A value of at least [MinLength] bytes is found anywhere in a text, in plain and in base64, padded
// or not, with or without the space around it. A value that is a part of the name or the namespace
// of the reconciled object is not secret. The value of a logged pair is checked as text and as
// JSON, which follows pointers; so are the pairs of With, when the line is written.
//
// # What is not
//
//   - Values shorter than MinLength bytes: they would be found everywhere.
//   - Other forms of a value: escaped in a URL, in JSON or by %q, in hexadecimal, or as the list of
//     its bytes, which is how fmt writes a []byte and %v a Secret. Print names, not objects.
//   - Parts of a value: a line of it, the password in a URL, the token in a kubeconfig. Add them.
//   - Values derived from a value, such as its hash. Make the state that holds it a
//     plan.Confidential, or its resource sensitive.
//   - Texts that an author shows directly, such as a field of a status or a webhook: Scrub them.
//     Events are scrubbed by framework.Recorder, and the messages in a status by the status
//     resource (package statusresource).
//   - A value in an object that is not a Secret, such as a ConfigMap that an author fills with it,
//     once it is in the cluster: another reconciliation, which does not read the Secret, does not
//     know it. Put it into a Secret.
//   - Messages and events from before the value was known. Records and plans are scrubbed when they
//     are complete.
//   - Messages that bypass the context: fmt.Println, a logger of another library, or micrologger's
//     own Log, which has no context.
//   - Values read without a context, as by Get of an informer.Source: Add them, or read through an
//     informer.Reader.
//
// Beyond [MaxSize] bytes of values in one reconciliation no more values are remembered, and no text
// is shown at all: [Withheld] replaces it.
package secretscontext
