package helm

import (
	"fmt"

	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
)

// largestRecord is how large a revision may be in its Secret, in bytes. The rest is for what is recorded later: how its hooks and the revision
// itself have ended.
const largestRecord = corev1.MaxSecretSize - 4<<10

// checkSize returns an error for a revision that does not fit into a Secret.
func checkSize(r *release.Release) error {
	secret, err := pack(&stored{Release: r}, createdLabel)
	if err != nil {
		return fmt.Errorf("find out how large the release is: %w", err)
	}
	if size := len(secret.Data[releaseData]); size > largestRecord {
		return framework.Permanent(fmt.Errorf("the release has %d bytes compressed, and its Secret takes %d at most: leave files that the "+
			"templates do not need out of the chart, or split the chart", size, largestRecord))
	}
	return nil
}
