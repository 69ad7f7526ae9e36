package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// street is a namespace in which copies of the operator live side by side.
type street struct {
	t         *testing.T
	kube      *operatortest.Instance
	user      client.Client
	namespace string
	ledger    *operatortest.Ledger
}

func newStreet(t *testing.T) *street {
	t.Helper()
	s, scheme := &street{t: t, kube: operatortest.Start(t), ledger: operatortest.NewLedger()}, runtime.NewScheme()
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err = errors.Join(err, clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s.kube.InstallCRDs(t, crds...)
	s.user = operatortest.NewClient(t, s.kube.RESTConfig(), scheme)
	s.namespace = s.kube.Namespace(t)
	t.Cleanup(s.keptApart)
	return s
}

// copied is a copy of the operator under another name, whose children have the suffix at the end of their names.
type copied struct {
	street       *street
	name, suffix string

	mu     sync.Mutex
	lives  []*operatortest.Faults
	cancel context.CancelFunc
}

// run lets the copy live until the end of the test, however often it crashes.
func (s *street) run(name, suffix string) *copied {
	s.t.Helper()
	c := &copied{street: s, name: name, suffix: suffix}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := c.live(ctx); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
	})
	return c
}

// live runs the copy until ctx ends or it crashes.
func (c *copied) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	faults := operatortest.NewFaults()
	c.mu.Lock()
	c.lives, c.cancel = append(c.lives, faults), cancel
	c.mu.Unlock()
	return RunCopy(c.name, c.suffix)(ctx, faults.Wrap(c.street.ledger.As(c.name, c.street.kube.RESTConfig())), c.street.namespace)
}

// RunCopy returns what runs a copy of the operator under another name, which its conditions begin with, and whose children have the
// suffix at the end of their names.
func RunCopy(name, suffix string) func(ctx context.Context, config *rest.Config, namespace string) error {
	return func(ctx context.Context, config *rest.Config, namespace string) error {
		scheme := runtime.NewScheme()
		logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
		if err = errors.Join(err, clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
			return err
		}
		deps, err := operator.NewDependencies(operator.DependenciesConfig{
			Name: name, RESTConfig: config, Scheme: scheme, Logger: logger, Namespaces: []string{namespace},
		})
		if err != nil {
			return err
		}
		defer deps.Close()
		frameworks, err := newFrameworks(deps, func(version string, site *v1alpha1.Website) ([]client.Object, error) {
			objects, err := children(version, site)
			for _, o := range objects {
				o.SetName(o.GetName() + suffix)
			}
			return objects, err
		}, strings.ToUpper(name[:1])+name[1:])
		if err != nil {
			return err
		}
		return frameworks[0].Run(ctx)
	}
}

// crash ends a life of the copy in the middle of whatever it does.
func (c *copied) crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lives) > 0 {
		c.lives[len(c.lives)-1].Cut()
		c.cancel()
	}
}

// writesOfChildren are the names of the children that the copy sent writes of, in all its lives.
func (c *copied) writesOfChildren() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, faults := range c.lives {
		for _, w := range faults.Writes() {
			if w.Resource == "configmaps" || w.Resource == "services" {
				names = append(names, w.Name)
			}
		}
	}
	return names
}

// children returns the ConfigMaps and Services that the copies made, by kind and name.
func (s *street) children() (map[string]client.Object, error) {
	children := map[string]client.Object{}
	var pages corev1.ConfigMapList
	var services corev1.ServiceList
	mine := []client.ListOption{client.InNamespace(s.namespace), client.HasLabels{objectresource.OwnerLabel}}
	if err := errors.Join(s.user.List(s.t.Context(), &pages, mine...), s.user.List(s.t.Context(), &services, mine...)); err != nil {
		return nil, err
	}
	for i := range pages.Items {
		children["page "+pages.Items[i].Name] = &pages.Items[i]
	}
	for i := range services.Items {
		children["service "+services.Items[i].Name] = &services.Items[i]
	}
	return children, nil
}

// live through what users do for a while, with crashes of the copies in between, and return which texts the sites have at the end. There is
// at least one then.
func (s *street) liveThrough(copies []*copied) map[string]string {
	s.t.Helper()
	span := time.Minute
	if testing.Short() {
		span = 5 * time.Second
	}
	sites := map[string]string{}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret comes of it
	for n, end := 0, time.Now().Add(span); time.Now().Before(end) || len(sites) == 0; n++ {
		name := []string{"home", "blog", "shop"}[random.IntN(3)]
		site := &v1alpha1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		text := fmt.Sprint("text ", n)
		_, exists := sites[name]
		var err error
		switch {
		case !exists:
			site.Labels, site.Spec = map[string]string{v1alpha1.VersionLabel: "v1"}, v1alpha1.WebsiteSpec{Title: name, Text: text}
			err = s.user.Create(s.t.Context(), site)
			if apierrors.IsAlreadyExists(err) {
				// Its deletion is still being worked on.
				err, text = nil, ""
			}
			if text != "" {
				sites[name] = text
			}
		case random.IntN(4) == 0:
			err = s.user.Delete(s.t.Context(), site)
			delete(sites, name)
		default:
			err = s.user.Patch(s.t.Context(), site, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"text":"`+text+`"}}`)))
			sites[name] = text
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if random.IntN(5) == 0 {
			copies[random.IntN(len(copies))].crash()
		}
		time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond)
	}
	return sites
}

// keptApart fails the test if a copy has written or deleted what another one had created.
func (s *street) keptApart() {
	s.t.Helper()
	if trespasses := s.ledger.Trespasses(); len(trespasses) > 0 {
		s.t.Errorf("%d times a copy wrote what is another's, such as: %s", len(trespasses), trespasses[0])
	}
}

// settled waits until the children are exactly those that the sites want of copies with these suffixes.
func (s *street) settled(sites map[string]string, suffixes ...string) map[string]client.Object {
	s.t.Helper()
	var children map[string]client.Object
	operatortest.Eventually(s.t, "the children are those that are desired", func() error {
		var err error
		if children, err = s.children(); err != nil {
			return err
		}
		want := 0
		for site, text := range sites {
			for _, suffix := range suffixes {
				want += 2
				page, _ := children["page "+site+"-page"+suffix].(*corev1.ConfigMap)
				if page == nil || children["service "+site+suffix] == nil {
					return fmt.Errorf("site %s lacks a child with the suffix %q", site, suffix)
				}
				if !strings.Contains(page.Data["index.html"], "<p>"+text+"<") {
					return fmt.Errorf("page %s says %q, want %q", page.Name, page.Data["index.html"], text)
				}
			}
		}
		if len(children) != want {
			return fmt.Errorf("%d children, want %d", len(children), want)
		}
		return nil
	})
	return children
}

func TestR16CopiesOfAnOperatorWithOtherChildrenLiveSideBySide(t *testing.T) {
	s := newStreet(t)
	copies := []*copied{s.run("left", "-left"), s.run("right", "-right")}
	sites := s.liveThrough(copies)
	s.settled(sites, "-left", "-right")
	for _, c := range copies {
		foreign := slices.DeleteFunc(c.writesOfChildren(), func(name string) bool { return strings.HasSuffix(name, c.suffix) })
		if len(foreign) > 0 {
			t.Errorf("%s wrote %v", c.name, foreign)
		}
	}
}

func TestR16OfCopiesOfAnOperatorWithTheSameChildrenExactlyOneHasThem(t *testing.T) {
	s := newStreet(t)
	copies := []*copied{s.run("left", ""), s.run("right", "")}
	sites := s.liveThrough(copies)
	before := s.settled(sites, "")
	for name, child := range before {
		owner := child.GetAnnotations()[objectresource.OperatorAnnotation]
		loser := map[string]string{"left": "right", "right": "left"}[owner]
		operatortest.Eventually(t, "an event of "+loser+" says whose "+name+" is", func() error {
			var events corev1.EventList
			if err := s.user.List(t.Context(), &events, client.InNamespace(s.namespace)); err != nil {
				return err
			}
			for _, e := range events.Items {
				if strings.HasPrefix(e.Source.Component, loser+"/") && e.Reason == framework.ReasonReconciliationFailed &&
					strings.Contains(e.Message, child.GetName()) && strings.Contains(e.Message, fmt.Sprintf("operator %q", owner)) {
					return nil
				}
			}
			return fmt.Errorf("none of %d events does", len(events.Items))
		})
	}
	after := s.settled(sites, "")
	for name, child := range before {
		if now := after[name]; now.GetUID() != child.GetUID() || now.GetResourceVersion() != child.GetResourceVersion() {
			t.Errorf("%s was written although nothing changed", name)
		}
	}
}
