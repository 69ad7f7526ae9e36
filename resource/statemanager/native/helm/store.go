package helm

import (
	"context"
	"encoding/json"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	secrets := &annotatedSecrets{SecretInterface: client, created: annotations, known: map[string]metav1.ObjectMeta{}}
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

// errRecorded ends an action of Helm's when its revision is recorded.
var errRecorded = errors.New("the revision is recorded")

// recorder keeps what an action of Helm's records first, which is a pending revision with all that is to be put there, and ends the action
// with errRecorded: the rest is an operation.
type recorder struct {
	driver.Driver
	// literal is the chart that the action was given, in place of which the whole one is kept, with its notes; nil is none.
	literal, whole *chart.Chart
	notes          string
	// forget is called with the name of the Secret of a revision before that is deleted, because it is one too many for the history;
	// nil is not.
	forget func(secret string) error

	release *release.Release
}

// record has the storage end the action with which it is used.
func (s *store) record() *recorder {
	r := &recorder{Driver: s.Driver}
	s.Driver = r
	return r
}

// Create implements driver.Creator.
func (d *recorder) Create(key string, r releasei.Releaser) error {
	given, err := asRelease(r)
	if err != nil {
		return err
	}
	kept, info := *given, *given.Info
	if d.literal != nil {
		info.Notes = d.notes
		kept.Chart = d.whole
	}
	kept.Info = &info
	if err := d.Driver.Create(key, &kept); err != nil {
		return err
	}
	d.release = &kept
	return errRecorded
}

// Delete implements driver.Deletor.
func (d *recorder) Delete(key string) (releasei.Releaser, error) {
	if d.forget != nil {
		if err := d.forget(key); err != nil {
			return nil, err
		}
	}
	return d.Driver.Delete(key)
}

// recorded returns what was recorded, or why it was not.
func (d *recorder) recorded(err error) (*release.Release, error) {
	if d.release == nil {
		return nil, err
	}
	return d.release, nil
}

// annotatedSecrets keeps annotations on Secrets, which Helm's driver writes without any, and has it change them only as they were
// read: Helm gives no preconditions.
type annotatedSecrets struct {
	corev1client.SecretInterface
	// created are those of new Secrets.
	created map[string]string

	mu    sync.Mutex
	known map[string]metav1.ObjectMeta
}

// annotate adds annotations to what is written of a Secret from now on. Empty ones are taken away.
func (s *annotatedSecrets) annotate(name string, annotations map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known[name]
	known.Annotations = maps.Clone(known.Annotations)
	if known.Annotations == nil {
		known.Annotations = map[string]string{}
	}
	maps.Copy(known.Annotations, annotations)
	maps.DeleteFunc(known.Annotations, func(_, value string) bool { return value == "" })
	s.known[name] = known
}

// patch adds annotations to a Secret at once.
func (s *annotatedSecrets) patch(ctx context.Context, name string, annotations map[string]string) error {
	known, err := s.of(ctx, name)
	if err != nil {
		return err
	}
	// Maps of texts can always be encoded.
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": known.UID, "resourceVersion": known.ResourceVersion, "annotations": annotations,
	}})
	patched, err := s.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return err
	}
	s.annotate(name, annotations)
	s.learn(patched)
	return nil
}

// learn remembers the life and the version of a Secret, and the annotations that it has, unless they are to be others.
func (s *annotatedSecrets) learn(secret metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[secret.GetName()]
	if !ok {
		known.Annotations = maps.Clone(secret.GetAnnotations())
	}
	known.UID, known.ResourceVersion = secret.GetUID(), secret.GetResourceVersion()
	s.known[secret.GetName()] = known
}

// version returns the resource version in which a Secret was read or written last; empty if it was not.
func (s *annotatedSecrets) version(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[name].ResourceVersion
}

// of returns what is known of a Secret, which is read if it was not before.
func (s *annotatedSecrets) of(ctx context.Context, name string) (metav1.ObjectMeta, error) {
	for {
		s.mu.Lock()
		known := s.known[name]
		s.mu.Unlock()
		if known.ResourceVersion != "" {
			return known, nil
		}
		if _, err := s.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return known, err
		}
	}
}

// Create implements corev1client.SecretInterface. That somebody was quicker is a conflict: the next look tells who.
func (s *annotatedSecrets) Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error) {
	secret.Annotations = s.created
	created, err := s.SecretInterface.Create(ctx, secret, options)
	if apierrors.IsAlreadyExists(err) {
		return nil, apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, err)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[secret.Name] = created.ObjectMeta
	return created, nil
}

// Update implements corev1client.SecretInterface. A revision that failed is marked, because Helm says later that it is superseded,
// like those that were deployed.
func (s *annotatedSecrets) Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error) {
	known, err := s.of(ctx, secret.Name)
	if err != nil {
		return nil, err
	}
	if secret.Labels[helmStatusLabel] == string(common.StatusFailed) {
		s.annotate(secret.Name, map[string]string{failedAnnotation: "true"})
		known, _ = s.of(ctx, secret.Name)
	}
	secret.Annotations, secret.UID, secret.ResourceVersion = known.Annotations, known.UID, known.ResourceVersion
	updated, err := s.SecretInterface.Update(ctx, secret, options)
	if err == nil {
		s.learn(updated)
	}
	return updated, err
}

// Delete implements corev1client.SecretInterface.
func (s *annotatedSecrets) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	known, err := s.of(ctx, name)
	if err != nil {
		return err
	}
	options.Preconditions = &metav1.Preconditions{UID: &known.UID, ResourceVersion: &known.ResourceVersion}
	return s.SecretInterface.Delete(ctx, name, options)
}

// Get implements corev1client.SecretInterface.
func (s *annotatedSecrets) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error) {
	secret, err := s.SecretInterface.Get(ctx, name, options)
	if err == nil {
		s.learn(secret)
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
		s.learn(&list.Items[i])
	}
	return list, nil
}
