package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
)

const guardsFlag = "guards"

// The file of guards in a Pod.
const (
	guardsVolume = "guards"
	guardsFolder = "/etc/operatorkit-guards"
	guardsFile   = "guards.yaml"
	// guardsAnnotation of a Pod makes others replace it when the file changes: it is read at the
	// start.
	guardsAnnotation = "operatorkit.io/guards"
)

// ErrDenied is the error of "plan --detailed-exitcode" and "guards test" if a guard denies a
// change. Its exit code is ExitDenied.
var ErrDenied = errors.New("a guard denies changes")

// guardFlags adds the flag of the commands that make the frameworks.
func (p *program) guardFlags(flags *pflag.FlagSet) {
	if p.config.ReadGuards != nil {
		flags.StringVar(&p.options.guards, guardsFlag, "", "file of guards, which are asked about each change before it is made (default none)")
	}
}

// stateFlags adds the flags that say where the state is that the replicas of the operator share.
func (p *program) stateFlags(flags *pflag.FlagSet) {
	e, own := &p.options.election, p.config.LeaderElection
	flags.StringVar(&e.Namespace, "leader-election-namespace", own.Namespace, "namespace of the operator's Lease and state (default that of the Pod or of the kubeconfig's context)")
	flags.StringVar(&e.Name, "leader-election-name", own.Name, "name of the operator's Lease (default that of the operator)")
}

// readGuards reads a file of guards; none for an empty name.
func (p *program) readGuards(file string, namespaces client.Reader) ([]framework.Guard, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read guards: %w", err)
	}
	guards, err := p.config.ReadGuards(text, namespaces)
	if err != nil {
		return nil, fmt.Errorf("read guards: %s: %w", file, err)
	}
	return guards, nil
}

func (p *program) guardsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "guards",
		Short: "Try guards on a plan, or resume what their limits hold",
		Args:  understood(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.guardsTestCommand(), p.guardsResumeCommand())
	return cmd
}

func (p *program) guardsTestCommand() *cobra.Command {
	var file, planFile string
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Show what guards say about the changes of a saved plan",
		Long: "Show what guards say about each change of a plan that \"plan --out\" has saved. Nothing is changed or charged.\n\n" +
			"A plan has the name of the object that is reconciled, and nothing else of it: a guard that asks for more of object\n" +
			"can't be evaluated here, and denies. Namespaces are read from the cluster.\n\n" +
			"The exit code is 3 if a change is denied.",
		Example: p.examples("plan home --out home.plan", "guards test -f guards.yaml --plan home.plan"),
		Args:    understood(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" || planFile == "" {
				return &usageError{errors.New("give both --filename and --plan")}
			}
			ctx, stop := operator.Signals(cmd.Context())
			defer stop()
			return p.testGuards(ctx, cmd.OutOrStdout(), file, planFile)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file of guards")
	cmd.Flags().StringVar(&planFile, "plan", "", "file of a plan")
	withoutVariables(cmd.Flags(), "filename", "plan")
	return cmd
}

// testGuards asks the guards of a file about each change of a plan.
func (p *program) testGuards(ctx context.Context, w io.Writer, file, planFile string) error {
	plans, _, err := p.readPlans(planFile)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	var namespaces client.Reader
	if c, _, err := (&Program{p}).Client(); err == nil {
		namespaces = c
	}
	guards, err := p.readGuards(file, namespaces)
	if err != nil {
		return err
	}
	denied := false
	for _, one := range plans {
		fmt.Fprintln(w, plan.Escape(one.Object.String()))
		for _, r := range one.Resources {
			for _, c := range r.Changes {
				fmt.Fprintf(w, "  %s: %s %s\n", plan.Escape(r.Name), c.Action, plan.Escape(c.Object.String()))
				in := framework.GuardInput{
					Object: named(one.Object), Change: c, Operator: p.config.Name, Framework: one.Framework, Resource: r.Name,
				}
				for _, g := range guards {
					said := "does not match"
					if matches, err := g.Match(ctx, in); matches || err != nil {
						v := g.Verdict(err)
						said = strings.TrimSuffix(fmt.Sprintf("%s: %s", v.Action, v.Message), ": ")
						denied = denied || v.Action == plan.Denied
					}
					fmt.Fprintf(w, "    %s: %s\n", plan.Escape(g.Name), plan.Escape(said))
				}
			}
		}
	}
	if denied {
		return ErrDenied
	}
	return nil
}

// named is an object of which only the name is known.
func named(o plan.Object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.APIVersion, "kind": o.Kind,
		"metadata": map[string]any{"namespace": o.Namespace, "name": o.Name, "uid": string(o.UID)},
	}}
}

func (p *program) guardsResumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume [GUARD]",
		Short: "Forgive what counts for the limit of a guard, or of all guards",
		Long: "Forgive what counts for the limit of a guard, or for those of all guards. What the limit holds continues within\n" +
			"a minute, up to the limit again.",
		Example: p.examples("guards resume few-claims", "guards resume --leader-election-namespace operators"),
		Args:    understood(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			connection, err := p.connect()
			if err != nil {
				return err
			}
			config := operator.Config{Name: p.config.Name, RESTConfig: connection.config, LeaderElection: p.options.election}
			config.StateNamespace = cmp.Or(config.LeaderElection.Namespace, connection.namespace)
			resumed, err := operator.ResumeGuards(cmd.Context(), config, strings.Join(args, ""))
			if err != nil {
				return fmt.Errorf("resume guards: %w", err)
			}
			if len(resumed) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing is charged: are the names of the guard and the namespace of the operator right?")
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "resumed: %s\n", strings.Join(resumed, ", "))
			return nil
		},
	}
	p.stateFlags(cmd.Flags())
	return cmd
}

// addGuards puts the file of guards into a ConfigMap for the Pods.
func (d *deployment) addGuards() error {
	file := d.program.options.guards
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read guards: %w", err)
	}
	d.guards = string(text)
	given := slices.Index(d.args, "--"+guardsFlag+"="+file)
	d.args[given] = "--" + guardsFlag + "=" + guardsFolder + "/" + guardsFile
	return nil
}

func (d *deployment) guardsMap() client.Object {
	return &corev1.ConfigMap{ObjectMeta: d.in(d.namespace, d.name+"-guards"), Data: map[string]string{guardsFile: d.guards}}
}

// mountGuards mounts the ConfigMap.
func (d *deployment) mountGuards(template *corev1.PodTemplateSpec) {
	sum := sha256.Sum256([]byte(d.guards))
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, guardsAnnotation, hex.EncodeToString(sum[:6]))
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: d.name + "-guards"}}
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: guardsVolume, VolumeSource: corev1.VolumeSource{ConfigMap: source}})
	container := &template.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: guardsVolume, MountPath: guardsFolder, ReadOnly: true})
}
