package helm

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/operatorkit/operatorkit/framework"
)

// largestRecord is how large a revision may be in its Secret, in bytes. The rest is for what is recorded later: how its hooks and the revision
// itself have ended.
const largestRecord = corev1.MaxSecretSize - 4<<10

// checkSize returns an error for a rendering whose revision does not fit into a Secret.
func (j *job) checkSize(revision int, r *rendering) error {
	var manifest strings.Builder
	for _, m := range r.manifests {
		fmt.Fprintf(&manifest, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	measured := &measuredSecrets{}
	secrets := driver.NewSecrets(measured)
	secrets.SetLogger(slog.DiscardHandler)
	err := secrets.Create(j.service.Key.Name, &release.Release{
		Name: j.service.Key.Name, Namespace: j.service.Key.Namespace, Version: revision, Chart: r.chart, Config: j.service.Values,
		Manifest: manifest.String(), Hooks: r.hooks, Info: &release.Info{Status: common.StatusPendingInstall, Notes: r.notes},
	})
	if err != nil {
		return fmt.Errorf("find out how large the release is: %w", err)
	}
	if measured.size > largestRecord {
		return framework.Permanent(fmt.Errorf("the release has %d bytes compressed, and its Secret takes %d at most: leave files that the "+
			"templates do not need out of the chart, or split the chart", measured.size, largestRecord))
	}
	return nil
}

// measuredSecrets measures what Helm's storage would write.
type measuredSecrets struct {
	corev1client.SecretInterface
	size int
}

// Create implements corev1client.SecretInterface.
func (s *measuredSecrets) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	for _, content := range secret.Data {
		s.size += len(content)
	}
	return secret, nil
}
