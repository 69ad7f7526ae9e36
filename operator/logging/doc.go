// Package logging makes the one log stream of an operator: a micrologger.Logger with a level and a
// format, and adapters that lead the messages of libraries, which speak log/slog, logr or klog,
// into it.
//
//	logger, err := logging.New(logging.Config{Writer: os.Stderr, Format: logging.FormatText, Level: logging.LevelInfo})
//	if err != nil {
//		return err
//	}
//	logger.Log("level", "info", "message", "started", "workers", 10)
//	logger.With("object", "default/home").Errorf(ctx, err, "reconcile")
//
//	slogger := logging.Slog(logger) // for libraries that take a *slog.Logger
//	logging.Capture(logger)         // in a main only: klog, controller-runtime and slog.Default end here too
//
// What wants such a logger in the process of a manager of controller-runtime gets
// logging.FromLogr(mgr.GetLogger()).
//
// # Promises
//
//   - FormatJSON is micrologger's own format, one JSON object a line, so that what parses its
//     stream parses this one.
//   - A message below the level costs no formatting and no allocation of its own.
//   - What is too long is cut: a message and each value at 4 KiB, a stack at 12 KiB.
//   - Messages that are repeated are sampled: of those with one level and one text (of Debugf and
//     Errorf: one format) the first 100 in a second are written, and then each hundredth. The next
//     one that is written tells by "suppressed" how many were not. Messages without a text are not
//     sampled.
//   - LogCtx adds what the context carries, as micrologger does (package loggermeta): in a
//     resource of a framework that is framework, event, object, loop, resource and step. What a
//     message says itself under one of these keys counts.
//   - A message without a level, or with one that is not known, is always written.
//   - The adapters never write the content of an object, which may be a Secret: they write its
//     kind and name. What libraries say at verbosity 5 and above, such as the bodies of requests,
//     is never written.
//   - FormatText writes one line a message, except for the "stack" of a panic, which follows
//     indented. No value can forge a line: control characters are escaped.
//
// All loggers are safe for concurrent use.
package logging
