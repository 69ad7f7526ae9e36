package operatortest

import "context"

// Run starts a control plane for a program and returns when its API server is
// ready, which takes a few seconds, and some minutes when its binary has to be
// built (see Binary). The caller ends it with Stop; it also ends when the
// process does, in whatever way. Ctx is for the start only. Any number of them
// can run side by side.
//
// It fails when the binary can't be found or built, when the data folder is in
// use, and when a part ends while it is started, with the end of its log.
func Run(ctx context.Context, config Config) (*Instance, error) {
	return run(ctx, config, startedByProgram)
}

func run(ctx context.Context, config Config, by starter) (*Instance, error) {
	p, err := startPlane(ctx, config, by)
	if err != nil {
		return nil, err
	}
	return newInstance(p.kubeconfig, p)
}
