package helm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// orderName is a ConfigMap that says which version of the chart the crash test's operator is to put there.
const orderName = "order"

// hookChart has a hook, so that there are writes of Helm's in the middle too.
func hookChart(version string) files {
	return pageChart(version).with("templates/hook.yaml", `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {"helm.sh/hook": "pre-install,pre-upgrade,pre-delete"}
data: {version: {{ .Chart.Version | quote }}}
`)
}

// converge is a small operator: it computes and carries out what the order says, until the context ends.
func converge(ctx context.Context, cfg *rest.Config, namespace string, t testing.TB) error {
	return convergeTo(ctx, cfg, namespace, t, hookChart)
}

func convergeTo(ctx context.Context, cfg *rest.Config, namespace string, t testing.TB, chart func(version string) files) error {
	cluster, err := newCluster(cfg)
	if err != nil {
		return err
	}
	charts, err := helm.New(helm.Config{})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := step(ctx, charts, cluster, namespace, t, chart); err != nil && ctx.Err() == nil {
			t.Logf("tried again: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func step(
	ctx context.Context, charts *helm.Carrier, cluster *cluster, namespace string, t testing.TB, chart func(version string) files,
) error {
	order := &corev1.ConfigMap{}
	err := cluster.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: orderName}, order)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var service *carrier.Service
	switch version := order.Data["version"]; version {
	case "":
		service = serviceIn(t, namespace, nil, gone)
	case "1.0.0":
		service = serviceIn(t, namespace, chart(version).with("templates/extra.yaml", extraTemplate))
	default:
		service = serviceIn(t, namespace, chart(version), values(map[string]any{"text": "bye"}))
	}
	// The label of the owner is a hash, in which the name of the namespace can't be found.
	service.Owner.Namespace = "platform"
	result, err := charts.Compute(ctx, cluster, cluster.client, service)
	if err != nil || len(result.Changes) == 0 {
		return err
	}
	return charts.CarryOut(ctx, cluster, service, result)
}

// orders has the version put there.
func orders(version string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		order := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: orderName}}
		if err := client.IgnoreAlreadyExists(user.Create(ctx, order)); err != nil {
			return err
		}
		data, err := json.Marshal(map[string]any{"data": map[string]any{"version": version}})
		if err != nil {
			return err
		}
		return user.Patch(ctx, order, client.RawPatch("application/merge-patch+json", data))
	}
}

// stands waits for a release that is deployed, with no revision left in the middle.
func stands(version string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		revisions := &metav1.PartialObjectMetadataList{}
		revisions.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := user.List(ctx, revisions, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
			return err
		}
		deployed := 0
		for _, r := range revisions.Items {
			if status := r.Labels["status"]; strings.HasPrefix(status, "pending") || status == "uninstalling" {
				return fmt.Errorf("revision %s is %s", r.Labels["version"], status)
			} else if status == "deployed" && r.Annotations["services.operatorkit.io/version"] == "1.0.0" {
				deployed++
			}
		}
		if version == "" {
			if len(revisions.Items) > 0 {
				return fmt.Errorf("there are %d revisions", len(revisions.Items))
			}
			return nil
		}
		if deployed != 1 {
			return fmt.Errorf("%d revisions are deployed", deployed)
		}
		hook := &corev1.ConfigMap{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web-hook"}, hook); err != nil {
			return err
		}
		if hook.Data["version"] != version {
			return errors.New("the hook is that of another version")
		}
		return nil
	}
}

func TestACrashAtAnyWriteLeavesNothingBehind(t *testing.T) {
	operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
		Name: "helm",
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return converge(ctx, cfg, namespace, t)
		},
		Phases: []operatortest.Phase{
			{Name: "install", Do: orders("1.0.0"), Until: stands("1.0.0")},
			{Name: "upgrade", Do: orders("1.1.0"), Until: stands("1.1.0")},
			{Name: "remove", Do: orders(""), Until: stands("")},
		},
		Objects:  []client.Object{&corev1.ConfigMap{}},
		Parallel: 4,
		// The number of a revision counts the crashes.
		Normalize: func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "data", "revision")
		},
	})
}

// migrateChart has a job as a hook that is deleted when it has succeeded.
func migrateChart(version string) files {
	return hookChart(version).with("templates/migrate.yaml", strings.ReplaceAll(jobTemplate, "ANNOTATIONS",
		`{"helm.sh/hook": "pre-install,post-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}`))
}

// TestACrashWhileAHookRunsDoesNotRunItTwice counts the jobs that hooks have made: after a crash, the one that runs is found again.
func TestACrashWhileAHookRunsDoesNotRunItTwice(t *testing.T) {
	var mu sync.Mutex
	ran := map[string][]types.UID{}
	// completed completes jobs, as their controller does, and waits for the release.
	completed := func(version string, jobs int) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			job := &batchv1.Job{}
			err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "migrate"}, job)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil && job.DeletionTimestamp == nil && len(job.Status.Conditions) == 0 {
				now := metav1.Now()
				job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Conditions: []batchv1.JobCondition{
					{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
					{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
				}}
				if err := user.Status().Update(ctx, job); err != nil {
					return err
				}
				ran[namespace] = append(ran[namespace], job.UID)
			}
			if err := stands(version)(ctx, user, namespace); err != nil {
				return err
			}
			if n := len(ran[namespace]); n != jobs {
				return fmt.Errorf("the hook has run %d times, and not %d", n, jobs)
			}
			return nil
		}
	}
	operatortest.CrashAtEveryWrite(t, operatortest.Scenario{
		Name: "helm hooks",
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return convergeTo(ctx, cfg, namespace, t, migrateChart)
		},
		Phases: []operatortest.Phase{
			{Name: "install", Do: orders("1.0.0"), Until: completed("1.0.0", 1)},
			{Name: "upgrade", Do: orders("1.1.0"), Until: completed("1.1.0", 2)},
		},
		Objects:  []client.Object{&corev1.ConfigMap{}, &batchv1.Job{}},
		Parallel: 4,
		Normalize: func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "data", "revision")
		},
	})
}
