package helm_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// hooked is a ConfigMap with annotations in a chart, and whether it is of an installation.
func hooked(annotations string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: moved\n  annotations: {" + annotations + "}\ndata: {install: {{ .Release.IsInstall | quote }}, revision: {{ .Release.Revision | quote }}}\n"
}

func TestAHookWithoutANameIsRefusedWhicheverItsEventIs(t *testing.T) {
	k := newKit(t, helm.Config{})
	const nameless = "apiVersion: v1\nkind: %s\nmetadata: {generateName: some-, annotations: {helm.sh/hook: %s}}\n"
	for _, event := range []string{
		"pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-delete", "post-delete", "pre-rollback", "post-rollback", "test",
	} {
		chart := pageChart("1.0.0").with("templates/hook.yaml", fmt.Sprintf(nameless, "ConfigMap", event))
		if err := k.failure(k.service(chart), "page/templates/hook.yaml", "ConfigMap without a name", "metadata.name"); !framework.IsPermanent(err) {
			t.Errorf("%s: it is tried again: %v", event, err)
		}
	}
	unused := pageChart("1.0.0").with("templates/hook.yaml", fmt.Sprintf(nameless, "ConfigMap", "post-install"))
	k.settle(k.service(unused, named("off"), options(v1alpha1.ServiceHelmOptions{DisableHooks: pointer(true)})))
	listed := pageChart("1.0.0").with("templates/hook.yaml",
		"apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-delete}}\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {generateName: some-}}\n")
	k.fails(k.service(listed), "ConfigMap without a name")
}

func TestAReleaseWithHooksWithoutANameGoes(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(hookChart("1.0.0")))
	// As a release is that was made before such hooks were refused.
	config := k.helmConfig()
	last, err := config.Releases.Last("web")
	if err != nil {
		t.Fatal(err)
	}
	latest := last.(*release.Release)
	for _, event := range []string{"pre-delete", "post-delete", "test"} {
		h := *latest.Hooks[0]
		h.Name, h.Kind, h.Manifest = "", "Job", strings.ReplaceAll(strings.ReplaceAll(jobTemplate, "ANNOTATIONS", "{helm.sh/hook: "+event+"}"), "  name: migrate\n", "  generateName: migrate-\n")
		h.Events = []release.HookEvent{release.HookEvent(event)}
		latest.Hooks = append(latest.Hooks, &h)
	}
	if err := config.Releases.Update(latest); err != nil {
		t.Fatal(err)
	}
	removal := k.service(nil, gone)
	if notes := k.compute(removal).Notes; !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "passes over the hook pre-delete") }) {
		t.Errorf("the notes are %q", notes)
	}
	k.eventually(removal, "everything is gone", func(r *carrier.Result) bool { return r.Found == nil })
}

// TestAnInstallationIsOneUntilItHasSucceeded holds for each way in which the first one can end otherwise.
func TestAnInstallationIsOneUntilItHasSucceeded(t *testing.T) {
	chart := func(version, event string) files {
		return jobChart(`{"helm.sh/hook": `+event+`}`).with("Chart.yaml", "apiVersion: v2\nname: page\nversion: "+version+"\n").
			with("templates/told.yaml", hooked(""))
	}
	for _, event := range []string{"pre-install", "post-install"} {
		for name, c := range map[string]struct {
			// fails ends the first installation.
			fails func(k *kit, service *carrier.Service)
			again func(*carrier.Service)
			next  string
		}{
			"the hook fails": {func(k *kit, service *carrier.Service) {
				k.begins(service)
				k.ends(batchv1.JobFailed, "the pod gave up")
				says(k.t, k.goesOn(service), event, "the pod gave up")
			}, nil, "1.0.0"},
			"the chart changes then": {func(k *kit, service *carrier.Service) {
				k.begins(service)
				k.ends(batchv1.JobFailed, "the pod gave up")
				says(k.t, k.goesOn(service), event, "the pod gave up")
			}, nil, "1.1.0"},
			"the chart changes while the hook runs": {func(k *kit, service *carrier.Service) {
				k.begins(service)
				k.ends(batchv1.JobComplete, "")
			}, nil, "1.1.0"},
			"an object is refused": {func(k *kit, service *carrier.Service) {
				k.answers(http.MethodPatch, "web-page", 1)
				result := k.compute(service)
				if event == "pre-install" {
					k.begins(service)
					k.ends(batchv1.JobComplete, "")
					result = k.compute(service)
				}
				says(k.t, k.carrier.CarryOut(k.t.Context(), k.cluster, service, result), "injected fault")
			}, nil, "1.0.0"},
			"the operator ends before the hook": {func(k *kit, service *carrier.Service) {
				k.answers(http.MethodPut, "sh.helm.release.v1.web.v1", 2)
				says(k.t, k.carrier.CarryOut(k.t.Context(), k.cluster, service, k.compute(service)), "injected fault")
			}, nil, "1.0.0"},
			"it is taken over from another set": {func(k *kit, service *carrier.Service) {
				k.begins(service)
				k.ends(batchv1.JobFailed, "the pod gave up")
				says(k.t, k.goesOn(service), event, "the pod gave up")
			}, owner("office"), "1.0.0"},
		} {
			t.Run(event+", "+name, func(t *testing.T) {
				k := newKit(t, helm.Config{Timeout: time.Hour})
				c.fails(k, k.service(chart("1.0.0", event)))
				var change []func(*carrier.Service)
				if c.again != nil {
					change = append(change, c.again)
				}
				service := k.service(chart(c.next, event), change...)
				if notes := k.compute(service).Notes; !slices.Contains(notes, "runs the hook "+event+": Job migrate") {
					t.Errorf("the notes of the next plan are %q", notes)
				}
				k.begins(service)
				if result := k.compute(service); result.Health.Phase == v1alpha1.ServiceStateDeployed {
					t.Fatalf("it is %+v without its hook", result.Health)
				}
				k.ends(batchv1.JobComplete, "")
				k.settle(service)
				said := k.configMap("moved").Data
				if said["install"] != "true" || said["revision"] != "2" {
					t.Errorf("the templates were told %v", said)
				}
				equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 deployed"})

				// What follows is an upgrade, also when it fails at first, and the history has no other revision.
				upgrade := k.service(pageChart("2.0.0").with("templates/told.yaml", hooked("")))
				k.answers(http.MethodPatch, "web-page", 1)
				k.badly(upgrade)
				k.settle(upgrade)
				equal(t, "whether the templates were told of an installation", k.configMap("moved").Data["install"], "false")
			})
		}
	}
}

func TestAnInstallationThatFailsAgainAndAgainKeepsToTheHistory(t *testing.T) {
	k := newKit(t, helm.Config{History: 3})
	service := k.service(pageChart("1.0.0"))
	k.answers(http.MethodPatch, "web-page", 5)
	for range 5 {
		k.badly(service)
	}
	equal(t, "the revisions", k.statuses("web"), []string{"3 failed", "4 failed", "5 failed"})
	k.settle(service)
	equal(t, "the revisions", k.statuses("web"), []string{"4 failed", "5 superseded", "6 deployed"})
}

// TestAHookRunsAgainWhateverItsPolicyIs holds for those that run to their end, which Helm does not run twice.
func TestAHookRunsAgainWhateverItsPolicyIs(t *testing.T) {
	for _, policy := range []string{"hook-succeeded", "hook-failed"} {
		k := newKit(t, helm.Config{})
		service := k.service(jobChart(`{"helm.sh/hook": "pre-install,post-install", "helm.sh/hook-delete-policy": ` + policy + `}`))
		if policy == "hook-succeeded" {
			k.begins(service)
			k.ends(batchv1.JobFailed, "the pod gave up")
			says(t, k.goesOn(service), "the pod gave up")
		}
		for range 2 {
			k.eventually(service, "the hook is begun", func(r *carrier.Result) bool { return r.Requeue > 0 && k.isRunning("migrate") })
			k.ends(batchv1.JobComplete, "")
		}
		if result := k.settle(service); result.Health.Phase != v1alpha1.ServiceStateDeployed {
			t.Errorf("%s: it is %+v", policy, result.Health)
		}
	}
}

// isRunning reports whether a Job is there, and neither going nor at its end.
func (k *kit) isRunning(name string) bool {
	job := &batchv1.Job{}
	err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, job)
	return err == nil && job.DeletionTimestamp == nil && len(job.Status.Conditions) == 0
}

func TestAnObjectThatBecomesAHookIsDeletedAsPlannedAndAsByHelm(t *testing.T) {
	for _, c := range []struct {
		hook string
		// stays is whether a hook puts it there again after the objects.
		stays bool
	}{
		{`"helm.sh/hook": pre-upgrade`, false},
		{`"helm.sh/hook": pre-upgrade, "helm.sh/hook-delete-policy": hook-failed`, false},
		{`"helm.sh/hook": post-upgrade`, true},
		{`"helm.sh/hook": pre-delete`, false},
		{`"helm.sh/hook": pre-install`, false},
	} {
		for _, waits := range []bool{false, true} {
			k := newKit(t, helm.Config{})
			k.settle(k.service(pageChart("1.0.0").with("templates/moved.yaml", hooked(""))))
			before := k.configMap("moved")
			chart := pageChart("1.1.0").with("templates/moved.yaml", hooked(c.hook))
			if waits {
				chart = chart.with("templates/migrate.yaml", strings.ReplaceAll(jobTemplate, "ANNOTATIONS", `{"helm.sh/hook": pre-upgrade, "helm.sh/hook-weight": "1"}`))
			}
			service := k.service(chart)
			result := k.compute(service)
			if !slices.Contains(summary(result.Changes), "delete ConfigMap moved") {
				t.Errorf("%s: the plan is %q", c.hook, summary(result.Changes))
			}
			if waits {
				k.begins(service)
				k.ends(batchv1.JobComplete, "")
			}
			k.settle(service)
			if after := k.configMap("moved"); after != nil && (after.UID == before.UID || !c.stays) || after == nil && c.stays {
				t.Errorf("%s (with a hook that takes its time: %v): there is %v", c.hook, waits, after)
			}
		}
	}
}

func TestAHookThatBecomesAnObjectIsOneOfTheRelease(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0").with("templates/moved.yaml", hooked(`"helm.sh/hook": "pre-install"`))))
	uid := k.configMap("moved").UID
	service := k.service(pageChart("1.1.0").with("templates/moved.yaml", hooked("")))
	equal(t, "the plan", objectsIn(k.compute(service).Changes), []string{"update ConfigMap moved", "update ConfigMap web-page"})
	k.settle(service)
	moved := k.configMap("moved")
	if moved.UID != uid || moved.Annotations["meta.helm.sh/release-name"] != "web" || moved.Annotations["helm.sh/hook"] != "" || moved.Data["install"] != "false" {
		t.Errorf("it is %+v", moved)
	}
	k.settle(k.service(pageChart("1.2.0")))
	if k.configMap("moved") != nil {
		t.Error("it is not deleted with the objects of the release")
	}

	// What carries the marks of no service, or of another one, is left alone.
	k.settle(k.service(pageChart("1.0.0").with("templates/moved.yaml", hooked(`"helm.sh/hook": "pre-install"`)), named("other")))
	k.fails(service, "ConfigMap "+k.namespace+"/moved is there already")
	if err := k.user.Delete(t.Context(), k.configMap("moved")); err != nil {
		t.Fatal(err)
	}
	mine := &corev1.ConfigMap{}
	mine.Namespace, mine.Name, mine.Annotations = k.namespace, "moved", map[string]string{"helm.sh/hook": "pre-install"}
	if err := k.user.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	k.fails(service, "ConfigMap "+k.namespace+"/moved is there already")
}

func TestAHookThatHelmDoesNotKnowIsLeftOutWithANote(t *testing.T) {
	var said bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	defer slog.SetDefault(before)
	k := newKit(t, helm.Config{})
	const page = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
	misspelt := strings.ReplaceAll(fmt.Sprintf(page, "first"), "\n---\n", "") + "---\n" + hooked(`"helm.sh/hook": "post-install, pre-instal"`) + "---" + fmt.Sprintf(page, "last")[4:]
	service := k.service(pageChart("1.0.0").with("templates/moved.yaml", misspelt).
		with("templates/widget.yaml", strings.ReplaceAll(hooked(`"helm.sh/hook": crd-install`), "moved", "widget")))
	result := k.compute(service)
	told := strings.Join(result.Notes, "\n")
	for _, want := range []string{`ConfigMap moved in page/templates/moved.yaml is left out`, `"pre-instal"`, "pre-install", `"crd-install"`, "crds/"} {
		if !strings.Contains(told, want) {
			t.Errorf("nothing is said of %q in %q", want, result.Notes)
		}
	}
	equal(t, "the plan", objectsIn(result.Changes), []string{"create ConfigMap first", "create ConfigMap last", "create ConfigMap web-page"})
	k.settle(service)
	if said.Len() > 0 {
		t.Errorf("the process was told: %s", said.String())
	}
	// What comes of a definition that is left out is waited for, with the same note.
	custom := k.service(pageChart("1.0.0").with("templates/widget.yaml", widget(k.namespace+".example.com")).
		with("templates/definition.yaml", strings.Replace(definition(k.namespace+".example.com", "one"), "metadata: {", "metadata: {annotations: {helm.sh/hook: crd-install}, ", 1)), named("custom"))
	if result := k.compute(custom); !strings.Contains(strings.Join(result.Notes, "\n"), "crds/") || !strings.Contains(result.Health.Message, "waits for the kind") {
		t.Errorf("it is %+v, with the notes %q", result.Health, result.Notes)
	}
}
