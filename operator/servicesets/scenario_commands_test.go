package servicesets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// scenarioCommands are the commands that scripts have besides those of testscript. TestScenarios says what they do.
var scenarioCommands = map[string]func(*testscript.TestScript, bool, []string){
	"kubectl":   kubectl,
	"operator":  runOperator,
	"exits":     exits,
	"lasting":   lasting,
	"templates": templates,
	"gets":      gets,
	"deploys":   deploys,
	"fails":     fails,
	"gone":      gone,
	"manager":   manager,
	"shows":     shows,
	"says":      says,
	"remember":  remember,
	"kept":      kept,
}

// eventually waits until something holds. The limit finds scripts that hang, and measures nothing.
func eventually(ts *testscript.TestScript, condition func(ctx context.Context) error) {
	const limit, pause = 5 * time.Minute, 50 * time.Millisecond
	missing := errors.New("there was no time to look")
	err := wait.PollUntilContextTimeout(scenarioOf(ts).ctx, pause, limit, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		if err != nil && ctx.Err() == nil {
			missing = err
		}
		return err == nil, nil
	})
	if err != nil {
		ts.Fatalf("gave up waiting: %v", missing)
	}
}

func never(ts *testscript.TestScript, neg bool, args []string, least int) {
	if neg {
		ts.Fatalf("! does not fit here")
	}
	if len(args) < least {
		ts.Fatalf("%d arguments at least", least)
	}
}

func kubectl(ts *testscript.TestScript, neg bool, args []string) {
	s := scenarioOf(ts)
	if err := ts.Exec(s.kubectl, append([]string{"kubectl", "--kubeconfig", s.kubeconfig}, args...)...); (err != nil) != neg {
		ts.Fatalf("kubectl: %v", err)
	}
}

// runOperator runs a command of the operator. "operator run" goes on until "operator stop", or the end of the script.
func runOperator(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, false, args, 1)
	s := scenarioOf(ts)
	switch args[0] {
	case "run":
		s.start(ts, args[1:])
	case "stop":
		if err := s.stop(); err != nil {
			ts.Fatalf("%v", err)
		}
	default:
		if code := s.execute(ts, args); (code != command.ExitOK) != neg {
			ts.Fatalf("exit code %d", code)
		}
	}
}

// exits runs a command of the operator, which has to end with an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 3)
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if args[1] != "operator" {
		ts.Fatalf("only the operator has exit codes here")
	}
	if got := scenarioOf(ts).execute(ts, args[2:]); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// lasting writes what the last program wrote to a file of the same name, without what is different in each run.
func lasting(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 1)
	text := scenarioOf(ts).lasting(ts.ReadFile(args[0]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".txt"), []byte(text), 0o600))
}

// templates creates a ServiceTemplate of a Helm chart for each version.
func templates(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 2)
	s := scenarioOf(ts)
	for _, version := range args[1:] {
		ts.Check(s.client.Create(s.ctx, newTemplate(s.namespace, args[0], version)))
	}
}

func newTemplate(namespace, chart, version string) *v1alpha1.ServiceTemplate {
	return &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chart + "-" + version},
		Spec: v1alpha1.ServiceTemplateSpec{
			Helm: &v1alpha1.HelmChart{Repository: "https://charts.example.com", Chart: chart, Version: version},
		},
	}
}

// gets waits until a ServiceSet has exactly these services. One that is being removed has a '-' before its name.
func gets(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 1)
	want := slices.Sorted(slices.Values(args[1:]))
	eventually(ts, func(ctx context.Context) error {
		set, err := scenarioOf(ts).set(ctx, args[0])
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, listed(set)); diff != "" {
			return fmt.Errorf("the ServiceSet of %s has other services (-want +got):\n%s", args[0], diff)
		}
		return nil
	})
}

// listed returns what is in a ServiceSet as scripts write it.
func listed(set *v1alpha1.ServiceSet) []string {
	var list []string
	for i := range set.Spec.Services {
		e := &set.Spec.Services[i]
		list = append(list, shortName(e.Namespace, e.Name)+"@"+e.Version)
	}
	for _, r := range set.Spec.Removing {
		list = append(list, "-"+shortName(r.Namespace, r.Name))
	}
	slices.Sort(list)
	return list
}

func shortName(namespace, name string) string {
	if namespace == metav1.NamespaceDefault {
		return name
	}
	return namespace + "/" + name
}

// deploys reports, as a state manager does, that services run as the ServiceSet has them.
func deploys(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 2)
	for _, name := range args[1:] {
		report(ts, args[0], name, deployed)
	}
}

// fails reports that a service could not be brought to what the ServiceSet has.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 3)
	report(ts, args[0], args[1], func(e *v1alpha1.ServiceWithValues) v1alpha1.ServiceState {
		state := deployed(e)
		state.State, state.FailureMessage, state.LastDeployed = v1alpha1.ServiceStateFailed, args[2], nil
		return state
	})
}

// report waits until a ServiceSet has a service, in a version if one is given, and writes its state.
func report(ts *testscript.TestScript, set, service string, stateFor func(*v1alpha1.ServiceWithValues) v1alpha1.ServiceState) {
	name, version, _ := strings.Cut(service, "@")
	changeStatus(ts, set, func(set *v1alpha1.ServiceSet) error {
		i := slices.IndexFunc(set.Spec.Services, func(e v1alpha1.ServiceWithValues) bool {
			return shortName(e.Namespace, e.Name) == name && (version == "" || e.Version == version)
		})
		if i < 0 {
			return fmt.Errorf("the ServiceSet has no %s, but %v", service, listed(set))
		}
		entry := &set.Spec.Services[i]
		state := stateFor(entry)
		if before := stateOf(set, entry.Namespace, entry.Name); before != nil {
			if state.LastDeployed == nil {
				state.LastDeployed = before.LastDeployed
			}
			*before = state
			return nil
		}
		set.Status.Services = append(set.Status.Services, state)
		return nil
	})
}

// gone reports that services have been taken away.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 2)
	for _, name := range args[1:] {
		changeStatus(ts, args[0], func(set *v1alpha1.ServiceSet) error {
			if !slices.Contains(listed(set), "-"+name) && set.DeletionTimestamp == nil {
				return fmt.Errorf("the ServiceSet does not take %s away: it has %v", name, listed(set))
			}
			set.Status.Services = slices.DeleteFunc(set.Status.Services, func(s v1alpha1.ServiceState) bool {
				return shortName(s.Namespace, s.Name) == name
			})
			return nil
		})
	}
}

// changeStatus changes the status of a ServiceSet, as soon as change lets it.
func changeStatus(ts *testscript.TestScript, name string, change func(*v1alpha1.ServiceSet) error) {
	s := scenarioOf(ts)
	eventually(ts, func(ctx context.Context) error {
		set, err := s.set(ctx, name)
		if err != nil {
			return err
		}
		if err := change(set); err != nil {
			return err
		}
		set.Status.ObservedGeneration = set.Generation
		return s.client.Status().Update(ctx, set)
	})
}

// manager starts a state manager with which everything succeeds, until the end of the script.
func manager(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 0)
	s := scenarioOf(ts)
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := stateManager{s.client, s.namespace}.step(ctx)
			return false, err
		})
	}()
	ts.Defer(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			s.t.Errorf("the state manager: %v", err)
		}
	})
}

// shows waits until "kubectl get" shows the content of a file, as far as words go. With the flag -update the file becomes what
// is shown when nothing has changed for a while.
func shows(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 2)
	s, file := scenarioOf(ts), args[0]
	if *updateScenarios {
		s.updates[file] = s.atRest(ts, args[1:])
		return
	}
	want := words(ts.ReadFile(file))
	eventually(ts, func(ctx context.Context) error {
		got, err := s.get(ctx, args[1:])
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, words(got)); diff != "" {
			return fmt.Errorf("kubectl get %s shows something else (-want +got):\n%s\nwhich is\n%s", strings.Join(args[1:], " "), diff, got)
		}
		return nil
	})
}

// atRest returns what "kubectl get" shows when nothing has changed for a while.
func (s *scenario) atRest(ts *testscript.TestScript, args []string) (shown string) {
	const while = 3 * time.Second
	since := time.Now()
	eventually(ts, func(ctx context.Context) error {
		got, err := s.get(ctx, args)
		if err != nil || got != shown {
			shown, since = got, time.Now()
		}
		if err == nil && time.Since(since) < while {
			err = errors.New("it changes")
		}
		return err
	})
	return shown
}

// says waits until a pattern is found in what "kubectl get" shows.
func says(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 2)
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	eventually(ts, func(ctx context.Context) error {
		got, err := scenarioOf(ts).get(ctx, args[1:])
		if err == nil && !pattern.MatchString(got) {
			err = fmt.Errorf("kubectl get %s shows no %s:\n%s", strings.Join(args[1:], " "), pattern, got)
		}
		return err
	})
}

// words returns the lines of a text with one space between words.
func words(text string) []string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

// get returns what "kubectl get" shows.
func (s *scenario) get(ctx context.Context, args []string) (string, error) {
	args = append([]string{"kubectl", "--kubeconfig", s.kubeconfig, "get"}, args...)
	out, err := exec.CommandContext(ctx, s.kubectl, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return s.lasting(withoutAge(string(out))), nil
}

// withoutAge takes the last column from a table if it is AGE.
func withoutAge(table string) string {
	header, _, _ := strings.Cut(table, "\n")
	at := len(header) - len("AGE")
	if !strings.HasSuffix(header, " AGE") {
		return table
	}
	var text strings.Builder
	for line := range strings.Lines(table) {
		runes := []rune(strings.TrimSuffix(line, "\n"))
		text.WriteString(strings.TrimRight(string(runes[:min(at, len(runes))]), " ") + "\n")
	}
	return text.String()
}

// lasting returns a text without what is different in each run.
func (s *scenario) lasting(text string) string {
	text = strings.NewReplacer(s.workDir+string(filepath.Separator), "", s.namespace, "NAMESPACE").Replace(text)
	return uidPattern.ReplaceAllString(text, "UID")
}

// set reads a ServiceSet: that of CLUSTER itself, that of a MultiClusterService as CLUSTER/NAME, and on the
// management cluster as management/NAME.
func (s *scenario) set(ctx context.Context, name string) (*v1alpha1.ServiceSet, error) {
	clusterName, serviceName, ofService := strings.Cut(name, "/")
	var cluster *v1alpha1.ClusterDeployment
	var service *v1alpha1.MultiClusterService
	if clusterName != "management" {
		cluster = &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: clusterName}}
	}
	if ofService {
		service = &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: serviceName}}
	}
	set := &v1alpha1.ServiceSet{}
	return set, s.client.Get(ctx, serviceset.ObjectKey(s.namespace, cluster, service), set)
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
