package deploymentresource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deploymentresource"
)

func TestPlansShowEachOperationWithWhatItIsAbout(t *testing.T) {
	for name, test := range map[string]struct {
		// world changes the machines, and change what is asked for.
		world  func(v *view)
		change func(s *deploymentresource.Service)
		obj    object
		want   string
	}{
		"a first deployment is the create part": {
			want: `create
    + Container m1/web-N
        + container.env.LOG: "info"
        + container.env.TOKEN: (sensitive)
        + container.image: "app:v2"
        + name: "web"
    + Container m2/web-N: the same as for m1/web-N
· in 2 steps; if one fails, it stops there
`,
		},
		"images and volumes come first": {
			world: func(v *view) {
				v.has["id-1"] = api.Inventory{}
				v.has["id-2"] = api.Inventory{}
			},
			change: func(s *deploymentresource.Service) {
				s.Spec.Replicas = new(int32)
				*s.Spec.Replicas = 1
				s.Spec.Volumes = []api.VolumeSpec{{Name: "data"}}
				s.Spec.Container.VolumeMounts = []api.VolumeMount{{Volume: "data", Path: "/data"}}
				s.Spec.PreDeploy = &api.PreDeployHook{Command: []string{"migrate"}}
			},
			want: `create
    + Image m1/app:v2: pull it
    + Volume m1/data
    + Container m1/web-pre-deploy-N: run the pre-deploy hook to its end
    + Container m1/web-N
        + container.env.LOG: "info"
        + container.env.TOKEN: (sensitive)
        + container.image: "app:v2"
        + container.volumeMounts[/data]: "volume data"
        + name: "web"
· all at once; if one fails, it stops there
`,
		},
		"an update says whose place is taken, and what is secret stays so": {
			world: func(v *view) {
				v.put("id-1", running("web-old1", "app:v1"))
				v.put("id-2", running("web-old2", "app:v1"))
			},
			change: func(s *deploymentresource.Service) { s.Spec.Update.FailureAction = api.FailureRollback },
			want: `update
    ~ Container m1/web-N: replaces web-old1, start-first
        ~ container.env.TOKEN: (sensitive, changed)
        ~ container.image: "app:v1" -> "app:v2"
    ~ Container m2/web-N: replaces web-old2, start-first; the same as for m1/web-N
· in 2 steps; if one fails, all of this is undone
`,
		},
		"what changes in place is updated": {
			world: func(v *view) {
				v.put("id-1", running("web-1", "app:v2"))
				v.put("id-2", running("web-2", "app:v2"))
			},
			change: func(s *deploymentresource.Service) {
				memory := resource.MustParse("64Mi")
				s.Spec.Container.Resources.Memory = &memory
				s.Spec.Update.Parallelism, s.Spec.Update.MaxFailurePercent = 2, 50
				s.Spec.Update.FailureAction = api.FailureContinue
			},
			want: `update
    ~ Container m1/web-1: in place
        + container.resources.memory: "64Mi"
    ~ Container m2/web-2: in place; the same as for m1/web-1
· all at once; if more than 50% fail, it goes on with the others
`,
		},
		"too many are the delete part": {
			world: func(v *view) {
				v.put("id-1", running("web-1", "app:v2"))
				v.put("id-1", running("web-2", "app:v2"))
				v.put("id-2", running("web-3", "app:v2"))
			},
			want: "delete\n    - Container m1/web-2: more than 2\n",
		},
		"one that was stopped is started": {
			world: func(v *view) {
				stopped := running("web-1", "app:v2")
				stopped.State = api.ContainerExited
				v.put("id-1", stopped)
				v.put("id-2", running("web-2", "app:v2"))
			},
			want: "update\n    ~ Container m1/web-1: start it\n· all at once; if one fails, it stops there\n",
		},
		"what waits for a machine is a note": {
			world: func(v *view) {
				lost := api.Inventory{Containers: []api.Container{running("web-2", "app:v1")}}
				v.machines[1].State, v.machines[1].Reason, v.machines[1].LastSeen = api.MachineUnknown, "no route", &lost
				v.put("id-1", running("web-1", "app:v2"))
			},
			want: "· left alone: 1 container last seen on m2, which can't be seen now\n",
		},
		"a deletion removes all, those of hooks too": {
			world: func(v *view) {
				hook := running("web-pre-deploy", "app:v1")
				hook.Hook = true
				v.put("id-2", hook)
				v.put("id-1", running("web-1", "app:v2"))
				other := running("shop-1", "app:v2")
				other.ServiceName = "shop"
				v.put("id-1", other)
			},
			obj: object{deleted: true},
			want: `delete
    - Container m1/web-1: the service is deleted
    - Container m2/web-pre-deploy: the service is deleted
`,
		},
		"a deletion waits for machines that can't be seen": {
			world: func(v *view) {
				lost := api.Inventory{Containers: []api.Container{running("web-2", "app:v1")}}
				v.machines[0].State = api.MachineUnknown
				v.machines[1].State, v.machines[1].LastSeen = api.MachineUnknown, &lost
			},
			obj: object{deleted: true},
			want: "· waits for 1 container on m2, which can't be seen now; bring it back, or declare it gone for good\n" +
				"· waits for what may be on m1, which can't be seen; bring it back, or declare it gone for good\n",
		},
		"what stays on a machine that is drained is a note": {
			world: func(v *view) {
				v.machines[0].Drain = true
				v.put("id-1", running("web-1", "app:v2"))
				v.put("id-2", running("web-2", "app:v2"))
				v.machines[1].Unschedulable = "it is full"
			},
			want: "· left on m1, although it is drained: 1 container, because there is no other machine: m1: it is being drained; m2: it is full\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := seen()
			if test.world != nil {
				test.world(v)
			}
			service := deploymentresource.Service{Client: v, Spec: specOf("app:v2", 2)}
			if test.change != nil {
				test.change(&service)
			}
			if diff := cmp.Diff(test.want, named(textOf(t, of(service), &test.obj))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// named makes the names of new containers, which end in letters of their own, the same.
func named(text string) string {
	words := strings.SplitAfter(strings.ReplaceAll(text, "/web-pre-deploy-", "/web-pre-deploy/web-"), "/web-")
	for i := range words[1:] {
		w := words[i+1]
		if len(w) >= 5 && !strings.HasPrefix(w, "pre-") && (len(w) == 5 || !strings.ContainsAny(w[:5], ":\n; ")) {
			words[i+1] = "N" + w[5:]
		}
	}
	return strings.ReplaceAll(strings.Join(words, ""), "/web-pre-deploy/web-", "/web-pre-deploy-")
}

func TestHeldPlansAreShownAsANote(t *testing.T) {
	service := deploymentresource.Service{Client: seen(), Spec: specOf("app:v2", 2)}
	compute := func(ctx context.Context, _ *object) (*deploymentresource.Work, error) {
		work, err := deploymentresource.Plan(ctx, service)
		work.Hold = "given up"
		return work, err
	}
	if diff := cmp.Diff("· given up\n", textOf(t, compute, &object{})); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsDoneWithoutWork(t *testing.T) {
	nothing := func(context.Context, *object) (*deploymentresource.Work, error) { return nil, nil }
	if diff := cmp.Diff("", textOf(t, nothing, &object{})); diff != "" {
		t.Error(diff)
	}
	ctx := finalizerskeptcontext.NewContext(t.Context())
	if err := framework.ProcessDelete(ctx, &object{deleted: true}, []framework.Resource{newResource(t, nothing)}); err != nil {
		t.Fatal(err)
	}
	if !finalizerskeptcontext.IsKept(ctx) {
		t.Error("a deletion of which nothing is known is finished")
	}
}

func TestDeletionKeepsTheFinalizerWhileAnythingMayBeLeft(t *testing.T) {
	for name, test := range map[string]struct {
		world func(v *view)
		want  bool
	}{
		"nothing is left":              {func(*view) {}, false},
		"containers of others":         {func(v *view) { v.put("id-1", api.Container{ID: "x", Name: "x", State: api.ContainerRunning}) }, false},
		"a machine that can't be seen": {func(v *view) { v.machines[0].State = api.MachineUnknown }, true},
		"one on which nothing was": {func(v *view) {
			v.machines[0].State, v.machines[0].LastSeen = api.MachineUnknown, &api.Inventory{}
		}, false},
		"one that is gone for good": {func(v *view) { v.machines[0].State = api.MachineGone }, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := seen()
			test.world(v)
			ctx := finalizerskeptcontext.NewContext(t.Context())
			r := newResource(t, of(deploymentresource.Service{Client: v, Spec: specOf("app:v2", 2)}))
			if err := framework.ProcessDelete(ctx, &object{deleted: true}, []framework.Resource{r}); err != nil {
				t.Fatal(err)
			}
			if got := finalizerskeptcontext.IsKept(ctx); got != test.want {
				t.Errorf("the finalizer is kept: %v, want %v", got, test.want)
			}
		})
	}
}

func TestRemovalsAreForDeletionsAndOnlyForThem(t *testing.T) {
	service := deploymentresource.Service{Client: seen(), Spec: specOf("app:v2", 2)}
	for name, test := range map[string]struct {
		compute deploymentresource.Compute[*object]
		obj     object
	}{
		"a removal of what is to stay": {
			func(ctx context.Context, _ *object) (*deploymentresource.Work, error) {
				return deploymentresource.Removal(ctx, service)
			}, object{},
		},
		"a plan for what is to go": {
			func(ctx context.Context, _ *object) (*deploymentresource.Work, error) {
				return deploymentresource.Plan(ctx, service)
			}, object{deleted: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if patch, _, err := patchOf(t, test.compute, &test.obj); !framework.IsPermanent(err) || patch != nil {
				t.Errorf("got %v, %v", patch, err)
			}
		})
	}
}

// TestStalePlansAreRefused would panic if anything was carried out, because the view can't change anything.
func TestStalePlansAreRefused(t *testing.T) {
	v := seen()
	var told error
	r, err := deploymentresource.New(deploymentresource.Config[*object]{
		Logger: loggerOf(t, t.Output()),
		Compute: func(ctx context.Context, _ *object) (*deploymentresource.Work, error) {
			work, err := deploymentresource.Plan(ctx, deploymentresource.Service{Client: v, Spec: specOf("app:v2", 2)})
			v.put("id-1", running("web-1", "app:v1")) // somebody else is faster
			return work, err
		},
		Done: func(_ context.Context, _ *object, _ *deploymentresource.Work, err error) { told = err },
	})
	if err != nil {
		t.Fatal(err)
	}
	err = framework.ProcessUpdate(t.Context(), &object{}, []framework.Resource{r})
	if !errors.Is(err, deployment.ErrStalePlan) || !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict that is ErrStalePlan", err)
	}
	if !errors.Is(told, deployment.ErrStalePlan) {
		t.Errorf("Done was told %v", told)
	}
}

func TestFaultsOfTheConfigurationAreNamed(t *testing.T) {
	_, err := deploymentresource.New(deploymentresource.Config[*object]{})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "Logger must not be nil; Compute must not be nil") {
		t.Errorf("got %v", err)
	}
}

func TestFaultsOfTheSpecificationAreErrors(t *testing.T) {
	_, _, err := patchOf(t, of(deploymentresource.Service{Client: seen(), Spec: api.ServiceSpec{Name: "Web"}}), &object{})
	for _, want := range []string{"container.image: Required", "name: Invalid"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}
