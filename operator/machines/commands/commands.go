package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// New returns the commands ps, logs, exec, compose and names. It is the field Commands of command.Config.
func New(program *command.Program) []*cobra.Command {
	return []*cobra.Command{psCommand(program), logsCommand(program), execCommand(program), composeCommand(), namesCommand()}
}

// fleet is the machines of a namespace.
type fleet struct {
	*docker.Client
	// missing says which machines can't be looked at, and why.
	missing map[string]string
	close   func()
}

// located is a container, and the machine that it is on.
type located struct {
	api.Container
	machine string
}

// open connects to the machines of a namespace, or of that of the connection. The context that it returns is for the containers of the
// operator. The caller calls close.
func open(ctx context.Context, program *command.Program, namespace string) (context.Context, *fleet, error) {
	reader, connected, err := program.Client()
	if err != nil {
		return ctx, nil, err
	}
	namespace = cmp.Or(namespace, connected)
	found, faulty, err := machines.ReadMachines(ctx, reader, namespace)
	if err != nil {
		return ctx, nil, err
	}
	if len(found)+len(faulty) == 0 {
		return ctx, nil, fmt.Errorf("there are no Machines in namespace %s: name another one with --namespace", namespace)
	}
	cli, err := docker.New(docker.Config{Cluster: namespace, Machines: found})
	if err != nil {
		return ctx, nil, fmt.Errorf("connect to the machines of namespace %s: %w", namespace, err)
	}
	f := &fleet{Client: cli, missing: map[string]string{}, close: func() { _ = cli.Close() }}
	for name, err := range faulty {
		f.missing[name] = err.Error()
	}
	return identity.NewContext(ctx, scopeOf(program)), f, nil
}

// scopeOf says whose containers are meant.
func scopeOf(program *command.Program) *identity.Scope {
	name, former := program.Name()
	scope := &identity.Scope{Identity: machines.ServicesOf(name)}
	scope.FormerOperators = former
	return scope
}

// containers returns the containers of a service, or of all if that is empty, by service, machine and name. Those of pre-deploy hooks are
// among them.
func (f *fleet) containers(ctx context.Context, service string) ([]located, error) {
	all, err := f.ListMachines(ctx)
	if err != nil {
		return nil, err
	}
	var found []located
	owner := api.OwnershipOf(ctx)
	for _, m := range all {
		if m.State != api.MachineAvailable {
			f.missing[m.Name] = m.Reason
			continue
		}
		inventory, err := f.InspectMachine(ctx, m.ID)
		if err != nil {
			f.missing[m.Name] = err.Error()
			continue
		}
		for _, c := range inventory.Containers {
			if c.ServiceName != "" && owner.Owns(c.Owner) && (service == "" || c.ServiceName == service) {
				found = append(found, located{c, m.Name})
			}
		}
	}
	slices.SortFunc(found, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.ServiceName, b.ServiceName), cmp.Compare(a.machine, b.machine), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

// of is containers for a service that has to have some, of which one may be chosen by its name.
func (f *fleet) of(ctx context.Context, service, container string) ([]located, error) {
	found, err := f.containers(ctx, service)
	if err != nil {
		return nil, err
	}
	if container != "" {
		found = slices.DeleteFunc(found, func(c located) bool { return c.Name != container })
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(f.missing) > 0:
		return nil, fmt.Errorf("no container of service %s is seen, and these machines can't be: %s", service, f.reasons("; "))
	case container != "":
		return nil, fmt.Errorf("service %s has no container %s", service, container)
	}
	return nil, fmt.Errorf("service %s has no containers", service)
}

// reasons says why machines are missing.
func (f *fleet) reasons(separator string) string {
	var reasons []string
	for _, name := range slices.Sorted(maps.Keys(f.missing)) {
		reasons = append(reasons, name+": "+f.missing[name])
	}
	return strings.Join(reasons, separator)
}

// tell says which machines were left out.
func (f *fleet) tell(w io.Writer) {
	if len(f.missing) > 0 {
		_, _ = fmt.Fprintln(w, "not seen:", f.reasons("\nnot seen: "))
	}
}

// run calls a function for the machines of a namespace until a signal comes.
func run(cmd *cobra.Command, program *command.Program, namespace string, f func(ctx context.Context, fleet *fleet) error) error {
	ctx, stop := operator.Signals(cmd.Context())
	defer stop()
	ctx, fleet, err := open(ctx, program, namespace)
	if err != nil {
		return err
	}
	defer fleet.close()
	return f(ctx, fleet)
}

func namespaceFlag(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVarP(namespace, "namespace", "n", "", "namespace of the services and machines (default that of the Pod or of the kubeconfig's context)")
}
