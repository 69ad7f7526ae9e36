package helm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// Annotations of the Secrets in which Helm keeps releases. They are not labels, because Helm hands a release's labels on to its
// next revision, also to one that somebody makes by hand.
const (
	ownerNameAnnotation = "services.operatorkit.io/owner-name" // namespace and name of the ServiceSet
	ownerUIDAnnotation  = "services.operatorkit.io/owner-uid"
	templateAnnotation  = "services.operatorkit.io/template"
	versionAnnotation   = "services.operatorkit.io/version"
	// fingerprintAnnotation has the seal of the fingerprint.
	fingerprintAnnotation = "services.operatorkit.io/fingerprint"
	kindsAnnotation       = "services.operatorkit.io/kinds"
	// timeoutAnnotation and hooksAnnotation are what an uninstallation needs of the options.
	timeoutAnnotation = "services.operatorkit.io/timeout"
	hooksAnnotation   = "services.operatorkit.io/hooks"
	// secretAnnotation says which of the values come from Secrets.
	secretAnnotation = "services.operatorkit.io/secret-values"
	// refusedAnnotation has the seal of what was taken back, refusalAnnotation why.
	refusedAnnotation = "services.operatorkit.io/refused"
	refusalAnnotation = "services.operatorkit.io/refusal"
	// failedAnnotation says that the revision failed, whatever its status is now.
	failedAnnotation = "services.operatorkit.io/failed"
	// installedAnnotation says whether an installation of the release has succeeded, in this revision or before it: "true" or "false".
	installedAnnotation = "services.operatorkit.io/installed"
	// healthyAnnotation says that all objects of the revision were healthy once, so that it is not taken back any more.
	healthyAnnotation = "services.operatorkit.io/healthy"
	// progressAnnotation says how far the hooks of a revision are that is on its way.
	progressAnnotation = "services.operatorkit.io/progress"
)

// Labels that Helm puts on the Secret of a release.
const (
	helmOwnerLabel    = "owner"
	helmNameLabel     = "name"
	helmStatusLabel   = "status"
	helmRevisionLabel = "version"
	createdLabel      = "createdAt"
	modifiedLabel     = "modifiedAt"
	helmOwner         = "helm"
	releaseType       = "helm.sh/release.v1"
)

// systemLabels are those labels, which no release has as its own.
var systemLabels = []string{helmOwnerLabel, helmNameLabel, helmStatusLabel, helmRevisionLabel, createdLabel, modifiedLabel}

// record is what the metadata of its Secret tell of one revision of a release.
type record struct {
	secret      client.ObjectKey
	uid         types.UID
	version     string // the resource version
	revision    int
	status      common.Status
	begun       time.Time
	labels      map[string]string
	annotations map[string]string
}

// metadata is what names the Secret, with the life and the version in which it was read.
func (r *record) metadata() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.secret.Namespace, Name: r.secret.Name, UID: r.uid, ResourceVersion: r.version, Annotations: r.annotations,
	}}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}

// made tells whether this carrier made the revision, and not somebody who upgraded a release of ours by hand.
func (r *record) made() bool { return r.annotations[fingerprintAnnotation] != "" }

// refused tells whether the revision itself was refused, and is not the one that was gone back to then.
func (r *record) refused() bool {
	return r.annotations[refusedAnnotation] != "" && r.annotations[healthyAnnotation] == ""
}

// stands tells whether the revision is the one that is there.
func (r *record) stands() bool { return r.status == common.StatusDeployed }

// found tells what the record says of its service.
func (r *record) found(keeper carrier.Keeper) *carrier.Found {
	namespace, name, _ := strings.Cut(r.annotations[ownerNameAnnotation], "/")
	found := &carrier.Found{
		Key:   client.ObjectKey{Namespace: r.secret.Namespace, Name: r.labels[helmNameLabel]},
		Owner: carrier.Owner{Keeper: keeper, Namespace: namespace, Name: name, UID: types.UID(r.annotations[ownerUIDAnnotation])},
		Type:  v1alpha1.ServiceTypeHelm,
		Kinds: carrier.ParseKinds(strings.Split(r.annotations[kindsAnnotation], ",")),
	}
	if r.stands() {
		found.Template, found.Version = r.annotations[templateAnnotation], r.annotations[versionAnnotation]
		found.Seal = r.annotations[fingerprintAnnotation]
	}
	return found
}

// records are the revisions of a release, the oldest first.
type records []record

// latest returns the newest revision, or nil.
func (r records) latest() *record {
	if len(r) == 0 {
		return nil
	}
	return &r[len(r)-1]
}

// standing returns the newest revision that stands, or nil.
func (r records) standing() *record {
	for i := range slices.Backward(r) {
		if r[i].stands() {
			return &r[i]
		}
	}
	return nil
}

// whose says whose the release is. A revision that somebody made by hand has the labels of the one before, and no annotations.
func (r records) whose() string {
	latest := r.latest()
	said := &metav1.ObjectMeta{Labels: latest.labels}
	for _, earlier := range slices.Backward(r) {
		if earlier.labels[carrier.OwnerLabel] == latest.labels[carrier.OwnerLabel] && said.Annotations[carrier.OwnerAnnotation] == "" {
			said.Annotations = earlier.annotations
		}
	}
	return carrier.Whose(said)
}

// listRecords lists the revisions that match, by their metadata only, sorted by namespace, name and revision.
func listRecords(ctx context.Context, reader client.Reader, options ...client.ListOption) (records, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := reader.List(ctx, list, append(options, client.MatchingFields{"type": releaseType})...); err != nil {
		return nil, err
	}
	found := make(records, 0, len(list.Items))
	for _, item := range list.Items {
		revision, err := strconv.Atoi(item.Labels[helmRevisionLabel])
		if err != nil || item.Labels[helmNameLabel] == "" {
			continue
		}
		found = append(found, record{
			secret: client.ObjectKeyFromObject(&item), uid: item.UID, version: item.ResourceVersion, revision: revision,
			status: common.Status(item.Labels[helmStatusLabel]), begun: item.CreationTimestamp.Time,
			labels: item.Labels, annotations: item.Annotations,
		})
	}
	slices.SortFunc(found, func(a, b record) int {
		if c := strings.Compare(a.secret.Namespace, b.secret.Namespace); c != 0 {
			return c
		}
		if c := strings.Compare(a.labels[helmNameLabel], b.labels[helmNameLabel]); c != 0 {
			return c
		}
		return a.revision - b.revision
	})
	return found, nil
}

// revisionsOf selects the Secrets of one release.
func revisionsOf(key client.ObjectKey) []client.ListOption {
	return []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{helmOwnerLabel: helmOwner, helmNameLabel: key.Name}}
}

// recordsOf lists the revisions of one release.
func recordsOf(ctx context.Context, reader client.Reader, key client.ObjectKey) (records, error) {
	found, err := listRecords(ctx, reader, revisionsOf(key)...)
	if err != nil {
		return nil, fmt.Errorf("list the revisions of the release: %w", err)
	}
	return found, nil
}

// List implements carrier.Carrier.
func (c *Carrier) List(ctx context.Context, cluster carrier.Cluster, owner carrier.Owner, former ...carrier.Keeper) ([]carrier.Found, error) {
	ours, err := labels.NewRequirement(carrier.OwnerLabel, selection.In, owner.IDs(former))
	if err != nil {
		return nil, err
	}
	selector := labels.SelectorFromSet(labels.Set{helmOwnerLabel: helmOwner}).Add(*ours)
	all, err := listRecords(ctx, cluster.Client(), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the releases of %s/%s: %w", owner.Namespace, owner.Name, err)
	}
	var found []carrier.Found
	for i := range all {
		r := &all[i]
		newest := i == len(all)-1 || all[i+1].secret.Namespace != r.secret.Namespace ||
			all[i+1].labels[helmNameLabel] != r.labels[helmNameLabel]
		// Where the newest one of the owner is superseded, the newest of all is another owner's.
		if newest && r.status != common.StatusSuperseded {
			found = append(found, *r.found(owner.Keeper))
		}
	}
	return found, nil
}
