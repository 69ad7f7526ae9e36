package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

const shipCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ships.command.test.operatorkit.io
spec:
  group: command.test.operatorkit.io
  scope: Namespaced
  names: {plural: ships, singular: ship, kind: Ship, listKind: ShipList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              flag: {type: string}
          status:
            type: object
            properties:
              observedGeneration: {type: integer, format: int64}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  x-kubernetes-preserve-unknown-fields: true
                  required: [type]
                  properties: {type: {type: string}}
`

// shipyard is an operator that makes a Deployment for each Ship. Its flag --paint makes another build of it.
func shipyard() command.Config {
	image := ""
	return command.Config{
		Name: "shipyard", Version: "v1",
		CRDFiles: fstest.MapFS{"ships.yaml": {Data: []byte(shipCRD)}},
		Upgrade:  operator.UpgradeConfig{MinReady: 100 * time.Millisecond, ProgressDeadline: 20 * time.Second},
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&image, "paint", "", "image of the containers of the ships")
		},
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			ships, err := d.NewSource(kindOf("Ship"))
			if err != nil {
				return nil, err
			}
			owned, err := d.Own(kindOf("Ship"), &appsv1.Deployment{})
			if err != nil {
				return nil, err
			}
			hulls, err := objectresource.New(objectresource.Config[*unstructured.Unstructured]{
				Name: "hulls", Client: d.Client, Logger: d.Logger, Stores: owned.Stores,
				Desired: func(_ context.Context, ship *unstructured.Unstructured) ([]client.Object, error) {
					return []client.Object{hull(ship, image)}, nil
				},
			})
			if err != nil {
				return nil, err
			}
			state, err := statusresource.New(statusresource.Config[*unstructured.Unstructured]{
				Client: d.Client, Logger: d.Logger,
				Set: func(ctx context.Context, ship *unstructured.Unstructured, report *statusresource.Report) error {
					deployment := &appsv1.Deployment{}
					if err := d.Client.Get(ctx, client.ObjectKeyFromObject(ship), deployment); client.IgnoreNotFound(err) != nil {
						return err
					}
					if !floats(deployment) {
						report.Reconciling("Building", "its Deployment is not ready")
					}
					return nil
				},
			})
			if err != nil {
				return nil, err
			}
			f, err := d.NewFramework(framework.Config{Name: "ships", Source: ships, Watches: owned.Watches, Resources: []framework.Resource{hulls, state}})
			return []*framework.Framework{f}, err
		},
	}
}

func hull(ship *unstructured.Unstructured, image string) *appsv1.Deployment {
	flag, _, _ := unstructured.NestedString(ship.Object, "spec", "flag")
	labels := map[string]string{"ship": ship.GetName()}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: ship.GetName(), Annotations: map[string]string{"flag": flag}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "hull", Image: image}}},
			},
		},
	}
}

// floats reports whether a Deployment is as its specification says.
func floats(deployment *appsv1.Deployment) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		return false
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	result, err := status.Compute(u)
	return err == nil && result.Status == status.CurrentStatus
}

// harbour has Ships in several namespaces, and watches their Deployments.
type harbour struct {
	t          *testing.T
	instance   *operatortest.Instance
	client     client.WithWatch
	namespaces []string
	ships      int
	budget     int

	mu sync.Mutex
	// images are the images of the Deployments, and sunk those of the Deployments that are not ready.
	images map[client.ObjectKey]string
	sunk   map[client.ObjectKey]bool
	// most is how many Deployments with the image watched were not ready at once.
	watched string
	most    int
}

// newHarbour starts a control plane with a node on which pods with a broken image are never ready.
func newHarbour(t *testing.T, ships, budget int) *harbour {
	t.Helper()
	h := &harbour{t: t, ships: ships, budget: budget, images: map[client.ObjectKey]string{}, sunk: map[client.ObjectKey]bool{}}
	h.instance = operatortest.Start(t, operatortest.WithConfig(operatortest.Config{Controllers: operatortest.WorkloadControllers()}))
	h.client = operatortest.NewClient(t, h.instance.RESTConfig(), nil)
	crds, err := operator.ReadCRDs(fstest.MapFS{"ships.yaml": {Data: []byte(shipCRD)}})
	if err != nil {
		t.Fatal(err)
	}
	h.instance.InstallCRDs(t, crds...)
	ctx, cancel := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	t.Cleanup(beside.Wait)
	t.Cleanup(cancel)
	beside.Go(func() {
		_ = operatortest.RunNode(ctx, h.instance.RESTConfig(), operatortest.NodeConfig{Phase: func(pod *corev1.Pod) corev1.PodPhase {
			if pod.Spec.Containers[0].Image == "broken" {
				return ""
			}
			return corev1.PodRunning
		}})
	})
	beside.Go(func() { h.watch(ctx) })
	for range 6 {
		h.namespaces = append(h.namespaces, h.instance.Namespace(t))
	}
	for i := range ships {
		ship := kindOf("Ship")
		ship.SetNamespace(h.namespaces[i%len(h.namespaces)])
		ship.SetName(fmt.Sprintf("ship-%d", i))
		ship.Object["spec"] = map[string]any{"flag": "white"}
		if err := h.client.Create(ctx, ship); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// watch follows the Deployments in the order of their changes.
func (h *harbour) watch(ctx context.Context) {
	for ctx.Err() == nil {
		list := &appsv1.DeploymentList{}
		if err := h.client.List(ctx, list); err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for i := range list.Items {
			h.see(&list.Items[i])
		}
		w, err := h.client.Watch(ctx, &appsv1.DeploymentList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			continue
		}
		for e := range w.ResultChan() {
			if deployment, ok := e.Object.(*appsv1.Deployment); ok {
				h.see(deployment)
			}
		}
		w.Stop()
	}
}

func (h *harbour) see(deployment *appsv1.Deployment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := client.ObjectKeyFromObject(deployment)
	h.images[key], h.sunk[key] = deployment.Spec.Template.Spec.Containers[0].Image, !floats(deployment)
	sunk := 0
	for key, is := range h.sunk {
		if is && h.images[key] == h.watched {
			sunk++
		}
	}
	h.most = max(h.most, sunk)
}

// follow watches from now on how many Deployments with an image are not ready.
func (h *harbour) follow(image string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched, h.most = image, 0
}

// bounded checks that there were never more than the budget.
func (h *harbour) bounded() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.most > h.budget {
		h.t.Errorf("%d Deployments with the image %q were not ready at once, the budget is %d", h.most, h.watched, h.budget)
	}
}

// count returns how many Deployments have an image.
func (h *harbour) count(image string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, is := range h.images {
		if is == image {
			n++
		}
	}
	return n
}

// start starts a process of a build.
func (h *harbour) start(image string, args ...string) *operatortest.Replica {
	h.t.Helper()
	return operatortest.StartReplica(h.t, operatortest.ReplicaConfig{
		Path: "shipyard", Config: h.instance.RESTConfig(),
		Args: append(append([]string{
			"run", "--listen-address", "", "--inspector-address", "", "--leader-election-namespace", h.namespaces[0], "--log-format", "text",
			"--paint", image, fmt.Sprintf("--upgrade-budget=%d", h.budget),
		}, shortLease...), args...),
	})
}

// end ends processes, and waits until they have ended.
func (h *harbour) end(replicas []*operatortest.Replica) {
	h.t.Helper()
	for _, r := range replicas {
		if !r.Ended() {
			r.Signal(syscall.SIGTERM)
		}
	}
	for _, r := range replicas {
		r.Wait()
	}
}

func (h *harbour) state() (s upgrade.State) {
	stored := &corev1.ConfigMap{}
	if err := h.client.Get(context.Background(), client.ObjectKey{Namespace: h.namespaces[0], Name: "shipyard-state"}, stored); err == nil {
		_ = json.Unmarshal([]byte(stored.Data["upgrade"]), &s)
	}
	return s
}

// phase waits for a phase of an upgrade that is another one than that which began at since.
func (h *harbour) phase(since time.Time, phase upgrade.Phase) upgrade.State {
	h.t.Helper()
	var s upgrade.State
	operatortest.Eventually(h.t, "the upgrade is "+string(phase), func() error {
		if s = h.state(); s.Phase != phase || s.Since.Equal(since) {
			total := s.Total()
			return fmt.Errorf("it is %s, done %d, places %d, held %d, not seen %d", s.Phase, s.Done, len(s.Places), total.Held, total.Unseen)
		}
		return nil
	})
	return s
}

// disturb kills and pauses processes at random until stop is called, and starts others in their place.
func (h *harbour) disturb(replicas []*operatortest.Replica, kills int, start func() *operatortest.Replica) []*operatortest.Replica {
	h.t.Helper()
	for i := range kills {
		victim := rand.IntN(len(replicas))
		time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
		if replicas[victim].Ended() {
			replicas[victim] = start()
			continue
		}
		if i%4 == 3 {
			// It is paused for longer than its lease.
			replicas[victim].Signal(syscall.SIGSTOP)
			time.Sleep(12 * time.Second)
			replicas[victim].Signal(syscall.SIGCONT)
			time.Sleep(time.Second)
			if !replicas[victim].Ended() {
				continue
			}
		} else {
			replicas[victim].Signal(syscall.SIGKILL)
		}
		replicas[victim] = start()
	}
	return replicas
}

func TestAnUpgradeOfManyObjectsStaysInItsBudgetWhateverHappensToItsReplicas(t *testing.T) {
	ships, budget, kills := 1000, 20, 30
	if testing.Short() {
		ships, budget, kills = 40, 4, 6
	}
	for _, mode := range []struct {
		name     string
		replicas int
		args     []string
	}{{"one replica", 1, []string{"--leader-elect"}}, {"three replicas", 3, []string{"--sharding"}}} {
		t.Run(mode.name, func(t *testing.T) {
			h := newHarbour(t, ships, budget)
			crew := func(image string) (replicas []*operatortest.Replica) {
				for range mode.replicas {
					replicas = append(replicas, h.start(image, mode.args...))
				}
				return replicas
			}
			first := crew("fine")
			s := h.phase(time.Time{}, upgrade.Finished)
			operatortest.Eventually(t, "all ships float", func() bool { return h.count("fine") == ships && h.sinking() == 0 })

			// A build that breaks everything.
			h.follow("broken")
			h.end(first)
			second := h.disturb(crew("broken"), kills, func() *operatortest.Replica { return h.start("broken", mode.args...) })
			s = h.phase(s.Since, upgrade.Halted)
			if n := h.count("broken"); n != len(s.Places) || n > budget || n == 0 {
				t.Errorf("%d ships are broken, and %d have places", n, len(s.Places))
			}
			// A user's change of what is held goes through.
			held := h.held(s)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"flag":"red"}}`))
			if err := h.client.Patch(t.Context(), held, patch); err != nil {
				t.Fatal(err)
			}
			operatortest.Eventually(t, "the change goes through", func() error {
				deployment := &appsv1.Deployment{}
				err := h.client.Get(t.Context(), client.ObjectKeyFromObject(held), deployment)
				if err == nil && deployment.Annotations["flag"] != "red" {
					err = fmt.Errorf("its flag is %s", deployment.Annotations["flag"])
				}
				return err
			})
			h.mu.Lock()
			h.most = max(h.most-1, 0) // The one that its user has changed needs no place.
			h.mu.Unlock()
			h.bounded()

			// The former build brings them back.
			h.end(second)
			third := crew("fine")
			s = h.phase(s.Since, upgrade.Finished)
			operatortest.Eventually(t, "all ships float", func() bool { return h.count("fine") == ships && h.sinking() == 0 })

			// A harmless build takes no place.
			h.end(third)
			fourth := []*operatortest.Replica{}
			for range mode.replicas {
				fourth = append(fourth, h.start("fine", append([]string{"--workers=7"}, mode.args...)...))
			}
			if s = h.phase(s.Since, upgrade.Finished); s.Done > 0 {
				t.Errorf("a harmless build took %d places", s.Done)
			}

			// A good build changes all of them, while its replicas and the API server are disturbed.
			h.follow("better")
			h.end(fourth)
			fifth := crew("better")
			operatortest.Eventually(t, "it has begun", func() bool { return h.count("better") > 0 })
			if err := h.instance.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			// A replica that has lost its lease by then has ended.
			time.Sleep(12 * time.Second)
			fifth = h.disturb(fifth, kills/3, func() *operatortest.Replica { return h.start("better", mode.args...) })
			h.phase(s.Since, upgrade.Finished)
			operatortest.Eventually(t, "all ships float", func() bool { return h.count("better") == ships && h.sinking() == 0 })
			h.bounded()
			h.end(fifth)
		})
	}
}

// sinking returns how many Deployments are not ready.
func (h *harbour) sinking() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, is := range h.sunk {
		if is {
			n++
		}
	}
	return n
}

// held returns a ship without a place.
func (h *harbour) held(s upgrade.State) *unstructured.Unstructured {
	h.t.Helper()
	ships := &unstructured.UnstructuredList{}
	ships.SetGroupVersionKind(schema.GroupVersionKind{Group: "command.test.operatorkit.io", Version: "v1", Kind: "ShipList"})
	if err := h.client.List(h.t.Context(), ships); err != nil {
		h.t.Fatal(err)
	}
	for i := range ships.Items {
		ship := &ships.Items[i]
		if !slices.ContainsFunc(s.Places, func(p upgrade.Place) bool { return p.UID == ship.GetUID() }) {
			return ship
		}
	}
	h.t.Fatal("all ships have places")
	return nil
}

func TestTheCommandUpgradeShowsAndControlsTheUpgrade(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	execute := func(args ...string) (code int, text string) {
		var out bytes.Buffer
		args = append(append([]string{"upgrade"}, args...), "--kubeconfig", instance.Kubeconfig(), "--leader-election-namespace", namespace)
		code = command.Execute(t.Context(), nursery(), args, &out, &out)
		return code, out.String()
	}
	wants := func(code int, text string, args ...string) {
		t.Helper()
		gotCode, got := execute(args...)
		if gotCode != code || !strings.Contains(got, text) {
			t.Errorf("upgrade %v: exit code %d, want %d, and %q in:\n%s", args, gotCode, code, text, got)
		}
	}
	wants(command.ExitFailure, "the operator has not run with --upgrade-budget", "status")
	wants(command.ExitFailure, "no upgrade is known", "pause")

	state := upgrade.State{}
	state.Begin(upgrade.Build{ID: "0123456789abcdef", Version: "v2"}, time.Now())
	state.Places = []upgrade.Place{{Object: upgrade.Object{Framework: "plots", Namespace: "a", Name: "b"}, Since: time.Now(), Failed: "is not ready"}}
	state.OnHold = []string{"plots c"}
	state.Reports = map[string]upgrade.Report{"operator": {Objects: 7, Held: 5, Unseen: 1}}
	state.Phase, state.Failures = upgrade.Halted, 1
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nursery-state"}, Data: map[string]string{"upgrade": string(text)}}
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	if err := c.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"upgrade from an unknown build to v2 (0123456789abcdef): Halted", "done: 0, with a place: 1, failures: 1",
		"plots a/b: for 0s, is not ready", "operator: 7 objects, 1 not reconciled yet, 5 held, 0 on hold", "on hold by the annotation operatorkit.io/upgrade: 1",
	} {
		wants(command.ExitHalted, text, "status")
	}
	wants(command.ExitHalted, `"phase": "Halted"`, "status", "-o", "json")
	wants(command.ExitFailure, "is halted already", "pause")
	wants(command.ExitOK, "upgrade to v2 (0123456789abcdef): Running", "resume")
	wants(command.ExitUpgrading, "failures: 0", "status")
	wants(command.ExitOK, "Paused", "pause")
	wants(command.ExitUpgrading, "Paused", "status")
	wants(command.ExitOK, "Finished", "finish")
	wants(command.ExitOK, "Finished", "status")
	wants(command.ExitFailure, "is finished", "resume")
	wants(command.ExitUsage, "-o", "status", "-o", "yaml")
}
