package helm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// releaseData is the entry of its Secret in which a release is.
const releaseData = "release"

// stored is a revision with the metadata of its Secret, as read or written last. Changed annotations are written with the next update.
type stored struct {
	*release.Release
	secret metav1.ObjectMeta
}

// annotate changes annotations. Empty ones are taken away.
func (s *stored) annotate(annotations map[string]string) {
	changed := map[string]string{}
	maps.Copy(changed, s.secret.Annotations)
	maps.Copy(changed, annotations)
	maps.DeleteFunc(changed, func(_, value string) bool { return value == "" })
	s.secret.Annotations = changed
}

// load reads a revision.
func (j *job) load(ctx context.Context, r *record) (*stored, error) {
	secret := &corev1.Secret{}
	err := j.client.Get(ctx, r.secret, secret)
	if err == nil {
		var loaded *stored
		if loaded, err = unpack(secret); err == nil {
			return loaded, nil
		}
	}
	return nil, fmt.Errorf("read revision %d of the release: %w", r.revision, err)
}

// history reads all revisions, the oldest first. What can't be read is left out, as by Helm.
func (j *job) history(ctx context.Context) ([]*stored, error) {
	list := &corev1.SecretList{}
	if err := j.client.List(ctx, list, revisionsOf(j.service.Key)...); err != nil {
		return nil, fmt.Errorf("read the revisions of the release: %w", err)
	}
	var revisions []*stored
	for i := range list.Items {
		if loaded, err := unpack(&list.Items[i]); err == nil {
			revisions = append(revisions, loaded)
		}
	}
	slices.SortFunc(revisions, func(a, b *stored) int { return a.Version - b.Version })
	return revisions, nil
}

// create records a revision for the first time. One that exists already is a conflict: the next computation reports its owner.
func (j *job) create(ctx context.Context, r *release.Release, annotations map[string]string) (*stored, error) {
	s := &stored{Release: r, secret: metav1.ObjectMeta{Annotations: annotations}}
	secret, err := pack(s, createdLabel)
	if err == nil {
		err = j.client.Create(ctx, secret, client.FieldOwner(fieldManager))
	}
	if apierrors.IsAlreadyExists(err) {
		err = apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("record revision %d of the release: %w", r.Version, err)
	}
	s.secret = secret.ObjectMeta
	return s, nil
}

// update records a revision again, as it was read. One that failed is marked, because it is said to be superseded later, like those that were
// deployed.
func (j *job) update(ctx context.Context, s *stored) error {
	if s.Info.Status == common.StatusFailed {
		s.annotate(map[string]string{failedAnnotation: "true"})
	}
	secret, err := pack(s, modifiedLabel)
	if err != nil {
		return err
	}
	if err := j.client.Update(ctx, secret, client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	s.secret = secret.ObjectMeta
	return nil
}

// patch adds annotations to a Secret at once.
func (j *job) patch(ctx context.Context, s *stored, annotations map[string]string) error {
	patched := (&record{secret: client.ObjectKey{Namespace: s.secret.Namespace, Name: s.secret.Name}, uid: s.secret.UID}).metadata()
	marking := carrier.Marking(patched, s.secret.ResourceVersion, nil, annotations)
	if err := j.client.Patch(ctx, patched, marking, client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	s.annotate(annotations)
	s.secret.ResourceVersion = patched.ResourceVersion
	return nil
}

// pack returns the Secret in which Helm keeps a revision (helm.sh/release.v1): its JSON, compressed, in base64. The label is for the time.
func pack(s *stored, label string) (*corev1.Secret, error) {
	content, err := json.Marshal(s.Release)
	if err != nil {
		return nil, fmt.Errorf("encode revision %d: %w", s.Version, err)
	}
	var packed bytes.Buffer
	// The level is one that there is, and a buffer takes everything.
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, _ = w.Write(content)
	_ = w.Close()
	labels := map[string]string{}
	maps.Copy(labels, s.Labels)
	labels[label] = strconv.FormatInt(time.Now().Unix(), 10)
	labels[helmNameLabel], labels[helmOwnerLabel] = s.Name, helmOwner
	labels[helmStatusLabel], labels[helmRevisionLabel] = s.Info.Status.String(), strconv.Itoa(s.Version)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", s.Name, s.Version),
			UID: s.secret.UID, ResourceVersion: s.secret.ResourceVersion, Labels: labels, Annotations: s.secret.Annotations,
		},
		Type: releaseType,
		Data: map[string][]byte{releaseData: base64.StdEncoding.AppendEncode(nil, packed.Bytes())},
	}, nil
}

// unpack reads what pack has written.
func unpack(secret *corev1.Secret) (*stored, error) {
	packed, err := base64.StdEncoding.DecodeString(string(secret.Data[releaseData]))
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	s := &stored{Release: &release.Release{}, secret: secret.ObjectMeta}
	if err := json.Unmarshal(content, s.Release); err != nil {
		return nil, err
	}
	s.Labels = maps.Clone(secret.Labels)
	for _, name := range systemLabels {
		delete(s.Labels, name)
	}
	return s, nil
}
