package operatortest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// shelves is an operator that knows its objects by watches. A shelf is a ConfigMap of the user's, whose text the operator puts into a Secret that
// nobody owns, and which it deletes when the shelf is gone. The switches have it believe its lists.
type shelves struct {
	client    kubernetes.Interface
	namespace string
	shelves   corelisters.ConfigMapLister
	pages     corelisters.SecretLister

	writesByList bool // writes what its list says
	rules        bool // has a Role for each shelf, which it deletes when no shelf of its list wants it
	asks         bool // looks again and again
	idles        bool // reconciles again and again, and asks nothing
	reconciled   prometheus.Counter
}

func startShelves(change func(*shelves)) func(context.Context, *rest.Config, string) error {
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		httpClient, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return err
		}
		defer httpClient.CloseIdleConnections()
		c, err := kubernetes.NewForConfigAndClient(cfg, httpClient)
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = siteLabel }))
		defer factory.Shutdown()
		s := &shelves{client: c, namespace: namespace, shelves: factory.Core().V1().ConfigMaps().Lister(), pages: factory.Core().V1().Secrets().Lister()}
		change(s)
		registry := prometheus.NewRegistry()
		s.reconciled = prometheus.NewCounter(prometheus.CounterOpts{Name: "controller_runtime_reconcile_total", ConstLabels: prometheus.Labels{"controller": "shelves"}})
		if err := registry.Register(s.reconciled); err != nil {
			return err
		}
		operatortest.CountReconciliations(ctx, registry)
		wake := make(chan struct{}, 1)
		notice := func(any) {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
		handler := cache.ResourceEventHandlerFuncs{AddFunc: notice, UpdateFunc: func(_, o any) { notice(o) }, DeleteFunc: notice}
		for _, informer := range []cache.SharedIndexInformer{factory.Core().V1().ConfigMaps().Informer(), factory.Core().V1().Secrets().Informer()} {
			if _, err := informer.AddEventHandler(handler); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		factory.StartWithContext(ctx)
		factory.WaitForCacheSyncWithContext(ctx)
		for {
			if err := s.reconcile(ctx); err != nil && ctx.Err() == nil {
				time.AfterFunc(20*time.Millisecond, func() { notice(nil) })
			}
			s.reconciled.Inc()
			if s.asks || s.idles {
				time.AfterFunc(100*time.Millisecond, func() { notice(nil) })
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// reconcile looks at everything.
func (s *shelves) reconcile(ctx context.Context) error {
	all, err := s.shelves.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, shelf := range all {
		if err := s.fill(ctx, shelf.Name, shelf.Data["text"]); err != nil {
			return err
		}
		if err := s.rule(ctx, shelf.Name); err != nil {
			return err
		}
	}
	pages, err := s.pages.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := s.drop(ctx, page.Labels[siteLabel]); err != nil {
			return err
		}
	}
	if s.asks {
		_, err = s.client.CoreV1().ConfigMaps(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: siteLabel})
	}
	return err
}

// fill puts the text of a shelf into its page.
func (s *shelves) fill(ctx context.Context, shelf, text string) error {
	page, err := s.pages.Secrets(s.namespace).Get("page-of-" + shelf)
	if err == nil && string(page.Data["page"]) == text {
		return nil
	}
	if !s.writesByList {
		live, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, shelf, metav1.GetOptions{})
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		text = live.Data["text"]
	}
	page = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "page-of-" + shelf, Namespace: s.namespace, Labels: map[string]string{siteLabel: shelf}},
		Data:       map[string][]byte{"page": []byte(text)},
	}
	secrets := s.client.CoreV1().Secrets(s.namespace)
	live, err := secrets.Get(ctx, page.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = secrets.Create(ctx, page, metav1.CreateOptions{})
		return err
	case err != nil || string(live.Data["page"]) == text:
		return err
	}
	page.ResourceVersion = live.ResourceVersion
	_, err = secrets.Update(ctx, page, metav1.UpdateOptions{})
	return err
}

// rule makes the Role of a shelf, with rules.
func (s *shelves) rule(ctx context.Context, shelf string) error {
	if !s.rules {
		return nil
	}
	if _, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, shelf, metav1.GetOptions{}); err != nil {
		return client.IgnoreNotFound(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "page-of-" + shelf}}
	_, err := s.client.RbacV1().Roles(s.namespace).Create(ctx, role, metav1.CreateOptions{})
	return client.IgnoreAlreadyExists(err)
}

// drop deletes the page of a shelf that is gone.
func (s *shelves) drop(ctx context.Context, shelf string) error {
	_, err := s.shelves.ConfigMaps(s.namespace).Get(shelf)
	if err == nil {
		return nil
	}
	if s.rules {
		if err := s.client.RbacV1().Roles(s.namespace).Delete(ctx, "page-of-"+shelf, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if _, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, shelf, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return client.IgnoreNotFound(s.client.CoreV1().Secrets(s.namespace).Delete(ctx, "page-of-"+shelf, metav1.DeleteOptions{}))
}

// shelfScenario is the life of a shelf and the next one of the same name.
func shelfScenario(change func(*shelves)) operatortest.Scenario {
	return operatortest.Scenario{
		Name:  "shelf",
		Start: startShelves(change),
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(site), Until: pageSays("hello")},
			{Name: "change", Do: setText("bye"), Until: pageSays("bye")},
			{Name: "delete", Do: operatortest.Delete(site), Until: operatortest.Gone(site, page)},
			{Name: "again", Do: operatortest.Create(site), Until: pageSays("hello")},
		},
		Objects:  []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
		Parallel: 4,
	}
}

func pageSays(text string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		is := &corev1.Secret{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: page.Name}, is); err != nil {
			return err
		}
		if string(is.Data["page"]) != text {
			return fmt.Errorf("the page says %q", is.Data["page"])
		}
		return nil
	}
}
