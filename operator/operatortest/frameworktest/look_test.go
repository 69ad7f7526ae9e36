package frameworktest_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest/frameworktest"
)

// reader takes a second to read the version of an object.
type reader struct{ version atomic.Value }

func (*reader) Name() string { return "reader" }

func (r *reader) EnsureCreated(_ context.Context, obj any) error {
	time.Sleep(time.Second)
	r.version.Store(obj.(*corev1.ConfigMap).ResourceVersion)
	return nil
}

func (*reader) EnsureDeleted(context.Context, any) error { return nil }

func TestALookIsAtTheVersionThatIsGivenAndHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		source, read := informer.NewPush("pages"), &reader{}
		f, err := framework.New(framework.Config{Name: "pages", Source: source, Logger: logger, Resources: []framework.Resource{read}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		show := func(version string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "page", ResourceVersion: version}}
		}
		go func() {
			for _, version := range []string{"9", "10"} {
				time.Sleep(20 * time.Second) // nothing waits for a worker until then
				if err := source.Update(show(version)); err != nil {
					t.Error(err)
				}
			}
		}()
		frameworktest.Look(t, f, show("10"))
		if version := read.version.Load(); version != "10" {
			t.Errorf("the look was at version %v", version)
		}
		read.version.Store("")
		frameworktest.Look(t, f)
		if version := read.version.Load(); version != "10" {
			t.Errorf("a look at everything was at version %v", version)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
