package helm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	releasei "helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// store is Helm's storage of releases in Secrets, which keeps our annotations on them.
type store struct {
	*storage.Storage
	secrets *annotatedSecrets
}

// newStore returns the storage of the releases of a namespace. Revisions that are created through it get these annotations.
func newStore(a *access, namespace string, annotations map[string]string) (*store, error) {
	client, err := a.secrets(namespace)
	if err != nil {
		return nil, err
	}
	secrets := &annotatedSecrets{SecretInterface: client, created: annotations, known: map[string]map[string]string{}}
	d := driver.NewSecrets(secrets)
	d.SetLogger(slog.DiscardHandler)
	return &store{Storage: storage.Init(d), secrets: secrets}, nil
}

// get reads a revision.
func (s *store) get(name string, revision int) (*release.Release, error) {
	found, err := s.Get(name, revision)
	if err != nil {
		return nil, fmt.Errorf("read revision %d of the release: %w", revision, err)
	}
	return asRelease(found)
}

// history reads all revisions, the oldest first.
func (s *store) history(name string) ([]*release.Release, error) {
	found, err := s.History(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the revisions of the release: %w", err)
	}
	revisions := make([]*release.Release, 0, len(found))
	for _, f := range found {
		r, err := asRelease(f)
		if err != nil {
			return nil, err
		}
		revisions = append(revisions, r)
	}
	return revisions, nil
}

func asRelease(found releasei.Releaser) (*release.Release, error) {
	r, ok := found.(*release.Release)
	if !ok {
		return nil, fmt.Errorf("the release is of the unknown type %T", found)
	}
	return r, nil
}

// complete has the storage keep the whole chart and its notes for a release that was made with the bare chart.
func (s *store) complete(bare, whole *chart.Chart, notes string) {
	s.Driver = &completingDriver{Driver: s.Driver, bare: bare, whole: whole, notes: notes}
}

// completingDriver keeps a whole chart in place of the bare one that the action was given.
type completingDriver struct {
	driver.Driver
	bare, whole *chart.Chart
	notes       string
}

// Create implements driver.Creator.
func (d *completingDriver) Create(key string, r releasei.Releaser) error {
	return d.Driver.Create(key, d.completed(r))
}

// Update implements driver.Updator.
func (d *completingDriver) Update(key string, r releasei.Releaser) error {
	return d.Driver.Update(key, d.completed(r))
}

func (d *completingDriver) completed(r releasei.Releaser) releasei.Releaser {
	given, ok := r.(*release.Release)
	if !ok || given.Chart != d.bare {
		return r
	}
	kept, info := *given, *given.Info
	info.Notes = d.notes
	kept.Chart, kept.Info = d.whole, &info
	return &kept
}

// annotatedSecrets keeps annotations on Secrets, which Helm's driver writes without any.
type annotatedSecrets struct {
	corev1client.SecretInterface
	// created are those of new Secrets.
	created map[string]string

	mu    sync.Mutex
	known map[string]map[string]string
}

// annotate adds annotations to what is written of a Secret from now on.
func (s *annotatedSecrets) annotate(name string, annotations map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	merged := maps.Clone(s.known[name])
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, annotations)
	s.known[name] = merged
}

func (s *annotatedSecrets) of(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.known[name])
}

// learn remembers the annotations that a Secret has.
func (s *annotatedSecrets) learn(name string, annotations map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[name]; !ok {
		s.known[name] = maps.Clone(annotations)
	}
}

// Create implements corev1client.SecretInterface.
func (s *annotatedSecrets) Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error) {
	s.annotate(secret.Name, s.created)
	secret.Annotations = s.of(secret.Name)
	return s.SecretInterface.Create(ctx, secret, options)
}

// Update implements corev1client.SecretInterface. Helm reads a Secret before it updates it, except for those it has created.
// A revision that failed is marked, because Helm says later that it is superseded, like those that were deployed.
func (s *annotatedSecrets) Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error) {
	if secret.Labels[helmStatusLabel] == string(common.StatusFailed) {
		s.annotate(secret.Name, map[string]string{failedAnnotation: "true"})
	}
	secret.Annotations = s.of(secret.Name)
	return s.SecretInterface.Update(ctx, secret, options)
}

// Get implements corev1client.SecretInterface.
func (s *annotatedSecrets) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error) {
	secret, err := s.SecretInterface.Get(ctx, name, options)
	if err == nil {
		s.learn(secret.Name, secret.Annotations)
	}
	return secret, err
}

// List implements corev1client.SecretInterface.
func (s *annotatedSecrets) List(ctx context.Context, options metav1.ListOptions) (*corev1.SecretList, error) {
	list, err := s.SecretInterface.List(ctx, options)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		s.learn(list.Items[i].Name, list.Items[i].Annotations)
	}
	return list, nil
}
