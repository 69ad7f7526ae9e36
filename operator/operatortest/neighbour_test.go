package operatortest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// startCopier starts a second operator for sites, which keeps a copy of each. One that is tidy deletes whatever else it finds.
func startCopier(tidy bool) func(context.Context, *rest.Config, string) error {
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		c, err := client.New(cfg, client.Options{})
		if err != nil {
			return err
		}
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			var list corev1.ConfigMapList
			if err := c.List(ctx, &list, client.InNamespace(namespace)); err == nil {
				for i := range list.Items {
					_ = copyOrTidy(ctx, c, &list.Items[i], tidy)
				}
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	}
}

func copyOrTidy(ctx context.Context, c client.Client, found *corev1.ConfigMap, tidy bool) error {
	if _, isSite := found.Labels[siteLabel]; !isSite {
		if tidy && !strings.HasPrefix(found.Name, "copy-of-") && found.Name != "kube-root-ca.crt" {
			return c.Delete(ctx, found)
		}
		return nil
	}
	if found.DeletionTimestamp != nil {
		return nil
	}
	duplicate := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: found.Namespace, Name: "copy-of-" + found.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, duplicate, func() error {
		duplicate.Data = found.Data
		return controllerutil.SetControllerReference(found, duplicate, c.Scheme())
	})
	return err
}

// isCopied is a condition: the copier has done its work.
func isCopied(text string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		duplicate := &corev1.ConfigMap{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "copy-of-" + site.Name}, duplicate); err != nil {
			return err
		}
		if duplicate.Data["text"] != text {
			return errors.New("the copy says " + duplicate.Data["text"])
		}
		return nil
	}
}

func TestR16TwoOperatorsWithThingsOfTheirOwnBothConvergeWhileOneOfThemCrashes(t *testing.T) {
	t.Parallel()
	scenario := upTo(2, siteScenario(func(*sites) {}))
	scenario.Neighbour = startCopier(false)
	scenario.Phases[0].Until = operatortest.All(siteIsDone("hello"), isCopied("hello"))
	scenario.Phases[1].Until = operatortest.All(siteIsDone("bye"), isCopied("bye"))
	scenario.Sample = true
	if report, failures := sweep(t, scenario); len(failures) > 0 || report.Crashes < 5 {
		t.Errorf("%s, failures %v", report.Summary(), failures)
	}
}

func TestR16AnOperatorThatWritesWhatItsNeighbourCreatedIsCaught(t *testing.T) {
	for _, test := range []struct {
		name      string
		neighbour func(context.Context, *rest.Config, string) error
		want      []string
	}{
		{"a neighbour that deletes what it does not know", startCopier(true),
			[]string{"the neighbour wrote what is the operator's: DELETE configmaps ", "/registration-of-shop"}},
		// Either of what both make may be the first that one of them writes and the other created.
		{"the same operator once more", startSites(func(*sites) {}), []string{" wrote what is ", "-of-shop"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scenario := upTo(2, siteScenario(func(*sites) {}))
			scenario.Neighbour = test.neighbour
			scenario.Config = operatortest.Start(t).RESTConfig()
			// The tidy one leaves nothing to wait for.
			scenario.Phases[0].Until = func(ctx context.Context, user client.Client, namespace string) error {
				var found corev1.ConfigMap
				err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: site.Name}, &found)
				if err == nil && found.Annotations[doneMark] != "hello" {
					err = errors.New("the site is not done")
				}
				return err
			}
			scenario.Phases[1].Until = operatortest.All()
			scenario.Timeout = 10 * time.Second
			// Who of two is the first to write differs: with crashes each is at times the second.
			report, err := operatortest.ReportOf(t.Context(), scenario, operatortest.Crashes)
			if err == nil {
				err = report.Err()
			}
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want one with %q", err, want)
				}
			}
		})
	}
}
