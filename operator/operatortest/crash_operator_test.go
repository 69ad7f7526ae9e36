package operatortest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// sites is an operator of the smallest kind. A site is a ConfigMap of the user's. The
// operator puts its finalizer on it, registers it in a second ConfigMap that nobody
// owns, puts its page into a Secret that the site owns, and marks the site done. The
// switches break it.
type sites struct {
	client    client.Client
	namespace string

	forgetful  bool              // keeps the names of registrations in memory only
	registered map[string]string // is that memory
	trusting   bool              // puts its finalizer on new sites only
	hasty      bool              // marks a site done before it is
	careless   bool              // removes the finalizer before what it stands for
	slow       bool              // takes a while to begin
	chatty     map[string]bool   // says once more that a site is done, a while later; the texts said
	marked     time.Time         // when a site was last marked done
	mask       func(string) string

	gullible map[string]bool // believes that a site is gone when an answer says so; the sites of which it does
	recovers bool            // marks that it recovers from a crash, and works only where nothing is marked when it begins
	registry *http.Client    // of the other system where it registers sites
	address  string          // of that system
	blindly  bool            // registers there without looking
}

const (
	siteLabel     = "test/site"
	siteFinalizer = "test/registration"
	doneMark      = "test/done"
)

// startSites returns a scenario's start function for the operator that change makes
// of the correct one.
func startSites(change func(*sites)) func(context.Context, *rest.Config, string) error {
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		httpClient, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return err
		}
		c, err := client.New(cfg, client.Options{HTTPClient: httpClient})
		if err != nil {
			return err
		}
		s := &sites{
			client: c, namespace: namespace, registered: map[string]string{}, mask: func(text string) string { return text },
			registry: &http.Client{Transport: operatortest.TransportOf(ctx, http.DefaultTransport)},
		}
		change(s)
		return s.run(ctx)
	}
}

// run looks at all sites again and again; the next look is the retry after an error.
func (s *sites) run(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	if s.slow {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		var list corev1.ConfigMapList
		if err := s.client.List(ctx, &list, client.InNamespace(s.namespace), client.HasLabels{siteLabel}); err == nil {
			err := s.recover(ctx, list.Items)
			for i := range list.Items {
				name := list.Items[i].Name
				if err != nil || s.gullible[name] {
					continue
				}
				if err := s.reconcile(ctx, &list.Items[i]); apierrors.IsNotFound(err) && s.gullible != nil {
					s.gullible[name] = true
				}
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recover works off, behind a mark, what was begun before a crash. It works once: who finds the mark of another waits for its end.
func (s *sites) recover(ctx context.Context, list []corev1.ConfigMap) error {
	if !s.recovers {
		return nil
	}
	mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "recovery"}}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(mark), mark); !apierrors.IsNotFound(err) {
		return errors.Join(err, errors.New("somebody recovers"))
	}
	for i := range list {
		if !controllerutil.ContainsFinalizer(&list[i], siteFinalizer) {
			continue
		}
		if err := s.client.Create(ctx, mark); err != nil {
			return err
		}
		if err := s.reconcile(ctx, &list[i]); err != nil {
			return err
		}
		if err := s.client.Delete(ctx, mark); err != nil {
			return err
		}
	}
	s.recovers = false
	return nil
}

// announce registers a site in the other system.
func (s *sites) announce(ctx context.Context, site *corev1.ConfigMap, text string) error {
	if s.address == "" {
		return nil
	}
	method, entry := http.MethodPut, s.address+"/"+s.namespace+"/"+site.Name+"?text="+text
	if s.blindly {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, entry, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := s.registry.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

func (s *sites) reconcile(ctx context.Context, site *corev1.ConfigMap) error {
	if site.DeletionTimestamp != nil {
		return s.remove(ctx, site)
	}
	if isNew := site.Annotations[doneMark] == ""; !controllerutil.ContainsFinalizer(site, siteFinalizer) && (isNew || !s.trusting) {
		if err := s.patchSite(ctx, site, map[string]any{"finalizers": []string{siteFinalizer}}); err != nil {
			return err
		}
	}
	text := site.Data["text"]
	steps := []func() error{
		func() error { return s.register(ctx, site, text) },
		func() error { return s.putPage(ctx, site, text) },
		func() error {
			if site.Annotations[doneMark] == text {
				return s.repeat(ctx, site, text)
			}
			if err := s.announce(ctx, site, text); err != nil {
				return err
			}
			return s.markDone(ctx, site, text)
		},
	}
	if s.hasty {
		if site.Annotations[doneMark] == text {
			return nil
		}
		steps[0], steps[1], steps[2] = steps[2], steps[0], steps[1]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *sites) remove(ctx context.Context, site *corev1.ConfigMap) error {
	unregister := func() error {
		registration := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.registration(site), Namespace: s.namespace}}
		return client.IgnoreNotFound(s.client.Delete(ctx, registration))
	}
	release := func() error { return s.patchSite(ctx, site, map[string]any{"finalizers": nil}) }
	if s.careless {
		return errors.Join(release(), unregister())
	}
	if err := unregister(); err != nil {
		return err
	}
	return release()
}

func (s *sites) registration(site *corev1.ConfigMap) string {
	if s.forgetful {
		return s.registered[site.Name]
	}
	return "registration-of-" + site.Name
}

func (s *sites) register(ctx context.Context, site *corev1.ConfigMap, text string) error {
	name := s.registration(site)
	registration := &corev1.ConfigMap{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, registration)
	switch {
	case name == "" || apierrors.IsNotFound(err):
		registration.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: name}
		if s.forgetful {
			registration.GenerateName = "registration-of-" + site.Name + "-"
		}
		registration.Data = map[string]string{"text": text}
		if err := s.client.Create(ctx, registration); err != nil {
			return err
		}
		s.registered[site.Name] = registration.Name
		return nil
	case err != nil:
		return err
	case registration.Data["text"] == text:
		return nil
	}
	registration.Data = map[string]string{"text": text}
	return s.client.Update(ctx, registration)
}

func (s *sites) putPage(ctx context.Context, site *corev1.ConfigMap, text string) error {
	page := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "page-of-" + site.Name, Namespace: s.namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, s.client, page, func() error {
		page.Data = map[string][]byte{"page": []byte(s.mask(text))}
		return controllerutil.SetControllerReference(site, page, s.client.Scheme())
	})
	return err
}

func (s *sites) markDone(ctx context.Context, site *corev1.ConfigMap, text string) error {
	s.marked = time.Now()
	return s.patchSite(ctx, site, map[string]any{"annotations": map[string]string{doneMark: text}})
}

// repeat is a write that changes nothing.
func (s *sites) repeat(ctx context.Context, site *corev1.ConfigMap, text string) error {
	if s.chatty == nil || s.chatty[text] || time.Since(s.marked) < 200*time.Millisecond {
		return nil
	}
	s.chatty[text] = true
	return s.markDone(ctx, site, text)
}

func (s *sites) patchSite(ctx context.Context, site *corev1.ConfigMap, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return s.client.Patch(ctx, site, client.RawPatch(types.MergePatchType, patch))
}

// The user's part.

var (
	site = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{siteLabel: ""}},
		Data:       map[string]string{"text": "hello"},
	}
	registration = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "registration-of-shop"}}
	page         = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "page-of-shop"}}
)

func setText(text string) func(context.Context, client.Client, string) error {
	return func(ctx context.Context, user client.Client, namespace string) error {
		object := site.DeepCopy()
		object.Namespace = namespace
		return user.Patch(ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"text":%q}}`, text)))
	}
}

func siteIsDone(text string) func(context.Context, client.Client, string) error {
	return func(ctx context.Context, user client.Client, namespace string) error {
		object := &corev1.ConfigMap{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: site.Name}, object); err != nil {
			return err
		}
		if done := object.Annotations[doneMark]; done != text {
			return fmt.Errorf("site %s is marked done for %q, not for %q", site.Name, done, text)
		}
		return nil
	}
}

func isRegistered(text string) func(context.Context, client.Client, string) error {
	return func(ctx context.Context, user client.Client, namespace string) error {
		object := &corev1.ConfigMap{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: registration.Name}, object); err != nil {
			return err
		}
		if object.Data["text"] != text {
			return fmt.Errorf("registered with %q, not with %q", object.Data["text"], text)
		}
		return nil
	}
}
