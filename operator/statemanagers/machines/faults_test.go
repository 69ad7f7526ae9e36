package machines_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	operatormachines "github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

func TestWhyAWriteFailedIsToldUntilItWorks(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web")
	list(w.set, "web=web")
	applies := func(r operatortest.Request) bool {
		return r.Resource == "machineservices" && r.Method == http.MethodPatch && !r.DryRun
	}
	denial := apierrors.NewInternalError(errors.New("the webhook is away"))
	rule := w.faults.On(applies, operatortest.Answer(denial))
	work, err := w.manager.Compute(t.Context(), w.set)
	if err != nil || len(work.Operations) != 1 {
		t.Fatalf("the operations are %+v, %v", work.Operations, err)
	}
	w.set.ServiceSet.Status.Services = work.Services
	if err := w.manager.CarryOut(t.Context(), w.set, &work.Operations[0]); err == nil || !strings.Contains(err.Error(), "the webhook is away") {
		t.Fatalf("it was carried out: %v", err)
	}
	work, err = w.manager.Compute(t.Context(), w.set)
	want := "web Failed web: write MachineService " + w.namespace + "/web: Internal error occurred: the webhook is away"
	if err != nil || states(work) != want || changes(work) != 1 {
		t.Errorf("the states are %s, want %s (%v)", states(work), want, err)
	}
	rule.Remove()
	w.want(w.set, "when it works", "web Provisioning web")
}

func TestWhatHasChangedMeanwhileIsAConflict(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web", "next")
	list(w.set, "web=web")
	made, err := w.manager.Compute(t.Context(), w.set)
	if err != nil {
		t.Fatal(err)
	}
	w.settle(w.set)
	list(w.set, "web=next")
	changed, err := w.manager.Compute(t.Context(), w.set)
	if err != nil {
		t.Fatal(err)
	}
	// Of the status there is another one all the time.
	w.works("web")
	if err := w.manager.CarryOut(t.Context(), w.set, &changed.Operations[0]); err != nil || w.service("web").Spec.Container.Image != "next" {
		t.Errorf("with another status only: got %v", err)
	}
	for name, work := range map[string]*statemanager.Work{"creation": made, "update": changed} {
		if err := w.manager.CarryOut(t.Context(), w.set, &work.Operations[0]); !apierrors.IsConflict(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	drop(w.set, "web")
	gone, err := w.manager.Compute(t.Context(), w.set)
	if err != nil {
		t.Fatal(err)
	}
	// Another one of the same name is not deleted.
	if err := w.user.Delete(t.Context(), w.service("web")); err != nil {
		t.Fatal(err)
	}
	again := w.newSet("prod")
	w.templates(again, "web")
	list(again, "web=web")
	w.settle(again)
	if err := w.manager.CarryOut(t.Context(), w.set, &gone.Operations[0]); !apierrors.IsConflict(err) || w.service("web") == nil {
		t.Errorf("removal: got %v", err)
	}
}

func TestDependenciesMayBeInAnotherSet(t *testing.T) {
	w := newWorld(t)
	other := w.newSet("other")
	beside(w.set, other)
	w.templates(w.set, "web")
	w.templates(other, "db")
	list(w.set, "web=web", "db")
	list(other, "db=db")
	w.want(w.set, "before db is there", "web Pending web")
	w.settle(other)
	w.works("db")
	w.want(other, "db", "db Deployed db")
	w.settle(w.set)
	w.works("web")
	w.want(w.set, "when db is there", "web Deployed web")

	drop(other, "db")
	w.set.ServiceSet.Spec.Removing = nil
	drop(w.set, "web")
	work := w.want(other, "while web is there", "db Deleting db")
	if got := condition(work, native.ConditionWaiting); got != "True Dependents: waits until these services, which depend on it, are gone: apps/web" {
		t.Errorf("the condition Waiting is %q", got)
	}
	w.want(w.set, "web goes", "")
	w.want(other, "db goes", "")
}

func TestTemplatesMayBeInAnArchive(t *testing.T) {
	w := newWorld(t)
	text := manifest("web")
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	header := &tar.Header{Name: "services/web/service.yaml", Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
	if err := files.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	_, err := files.Write([]byte(text))
	if err := errors.Join(err, files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.URL.Path != "/web.tgz" {
			http.Error(out, "not now", http.StatusServiceUnavailable)
			return
		}
		_, _ = out.Write(archive.Bytes())
	}))
	t.Cleanup(server.Close)
	for _, name := range []string{"web", "other"} {
		w.set.Templates[name] = template(name)
		w.set.Templates[name].Namespace = w.namespace
		w.set.Templates[name].Spec.Resources = &v1alpha1.FileSource{Artifact: &v1alpha1.Artifact{URL: server.URL + "/" + name + ".tgz"}, Path: "services/web"}
	}
	list(w.set, "web=web")
	w.settle(w.set)
	w.works("web")
	w.want(w.set, "from an archive", "web Deployed web")

	// A server that does not answer may do so later.
	list(w.set, "other=other")
	work := w.settle(w.set)
	if got := states(work); !strings.HasPrefix(got, "other Failed other: fetch files of "+server.URL+"/other.tgz") || !strings.HasSuffix(got, "; web Deployed web") {
		t.Errorf("the states are %s", got)
	}
	if err := work.Operations[0].Err; err == nil || framework.IsPermanent(err) {
		t.Errorf("the error is %v", err)
	}
}

func TestAManagerSaysAllThatItLacks(t *testing.T) {
	_, err := machines.New(machines.Config{})
	for _, want := range []string{"Client", "Logger"} {
		if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	c := operatortest.NewClient(t, &rest.Config{Host: "http://127.0.0.1:1"}, nil)
	if _, err := machines.New(machines.Config{Client: c}); !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "v1alpha1.AddToScheme") {
		t.Errorf("the error for a scheme without MachineServices is %v", err)
	}
}

func TestAPauseOfSomebodyIsTold(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web", "next")
	list(w.set, "web=web")
	w.settle(w.set)
	w.says("web", operatormachines.ConditionProgressing, "1 to create")
	service := w.service("web")
	service.Annotations[framework.PausedAnnotation] = "true"
	if err := w.user.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	work := w.want(w.set, "while it is paused", "web Provisioning web")
	if got, want := condition(work, native.ConditionHealthy), "Unknown Provisioning: the annotation operatorkit.io/paused of its MachineService makes it stand still"; got != want {
		t.Errorf("the condition Healthy is %q", got)
	}
}
