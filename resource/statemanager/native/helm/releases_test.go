package helm_test

import (
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/action"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func (k *kit) configMap(name string) *corev1.ConfigMap {
	k.t.Helper()
	found := &corev1.ConfigMap{}
	err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return found
}

// helmConfig is what Helm's own actions need, as its command line makes it.
func (k *kit) helmConfig() *action.Configuration {
	k.t.Helper()
	set, err := kubernetes.NewForConfig(operatortest.Start(k.t).RESTConfig())
	if err != nil {
		k.t.Fatal(err)
	}
	config := action.NewConfiguration()
	config.Releases = storage.Init(driver.NewSecrets(set.CoreV1().Secrets(k.namespace)))
	config.KubeClient = reachable{}
	return config
}

// list is `helm list --all`.
func (k *kit) list() []*release.Release {
	k.t.Helper()
	list := action.NewList(k.helmConfig())
	list.All, list.StateMask = true, action.ListAll
	found, err := list.Run()
	if err != nil {
		k.t.Fatal(err)
	}
	var releases []*release.Release
	for _, f := range found {
		releases = append(releases, f.(*release.Release))
	}
	return releases
}

// listed is a line of `helm list --all` for each release.
func (k *kit) listed() []string {
	k.t.Helper()
	var lines []string
	for _, r := range k.list() {
		lines = append(lines, fmt.Sprintf("%s %d %s %s-%s", r.Name, r.Version, r.Info.Status, r.Chart.Name(), r.Chart.Metadata.Version))
	}
	return lines
}

// statuses are those of all revisions of a release.
func (k *kit) statuses(name string) []string {
	k.t.Helper()
	secrets := &corev1.SecretList{}
	if err := k.user.List(k.t.Context(), secrets, client.InNamespace(k.namespace), client.MatchingLabels{"owner": "helm", "name": name}); err != nil {
		k.t.Fatal(err)
	}
	var lines []string
	for _, s := range secrets.Items {
		lines = append(lines, s.Labels["version"]+" "+s.Labels["status"])
	}
	slices.Sort(lines)
	return lines
}
