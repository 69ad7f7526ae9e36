package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/operator"
)

// parts are what the operator is made of, as its author makes it. Close them when nothing of them runs any more.
type parts struct {
	connection *connection
	logger     micrologger.Logger
	deps       *operator.Dependencies
	frameworks []*framework.Framework
}

// newParts makes the dependencies and the frameworks. What the flags say goes before what config says of it.
func (p *program) newParts(ctx context.Context, stderr io.Writer, connection *connection, config operator.DependenciesConfig) (*parts, error) {
	logger, err := config.Logger, error(nil)
	if logger == nil {
		logger, err = p.logger(stderr)
	}
	if err != nil {
		return nil, err
	}
	config.Name, config.FormerNames = p.config.Name, p.config.FormerNames
	config.RESTConfig, config.Logger = connection.config, logger
	config.Namespaces = p.options.namespaces
	if config.Scheme, err = p.scheme(); err != nil {
		return nil, err
	}
	deps, err := operator.NewDependencies(config)
	if err != nil {
		return nil, err
	}
	if deps.Guards, err = p.readGuards(p.options.guards, deps.Client); err != nil {
		deps.Close()
		return nil, err
	}
	var frameworks []*framework.Framework
	err = called(logger, func() (err error) {
		frameworks, err = p.config.New(ctx, deps)
		return err
	})
	if err == nil && len(frameworks) == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		deps.Close()
		return nil, fmt.Errorf("make the frameworks: %w", err)
	}
	return &parts{connection: connection, logger: logger, deps: deps, frameworks: frameworks}, nil
}

// called calls a function of the author's. A panic is its error, and the log has the stack.
func called(logger micrologger.Logger, f func() error) error {
	err := panics.Recovered(f)
	if panicked := (*panics.Error)(nil); errors.As(err, &panicked) {
		logger.Log("level", "error", "message", panicked.Error(), "stack", string(panicked.Stack))
	}
	return err
}

// close closes the dependencies.
func (p *parts) close() { p.deps.Close() }
