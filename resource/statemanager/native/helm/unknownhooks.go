package helm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"
)

// knownHooks are what Helm knows as a value of the annotation of hooks.
var knownHooks = []string{
	string(release.HookPreInstall), string(release.HookPostInstall), string(release.HookPreUpgrade), string(release.HookPostUpgrade),
	string(release.HookPreDelete), string(release.HookPostDelete), string(release.HookPreRollback), string(release.HookPostRollback),
	string(release.HookTest), "test-success",
}

// leaveOut takes the documents with a hook that Helm does not know out of what was rendered, and remarks on them. Helm leaves them out too, with
// a line on the standard error of the process.
func (r *rendering) leaveOut() {
	for _, file := range slices.Sorted(maps.Keys(r.files)) {
		for _, document := range documentsOf(r.files[file]) {
			var head releaseutil.SimpleHead
			if yaml.Unmarshal([]byte(document), &head) != nil || head.Metadata == nil {
				continue // It is Helm's to say what is wrong with it.
			}
			hooks, ok := head.Metadata.Annotations[release.HookAnnotation]
			if !ok {
				continue
			}
			for hook := range strings.SplitSeq(hooks, ",") {
				if hook = strings.ToLower(strings.TrimSpace(hook)); !slices.Contains(knownHooks, hook) {
					r.files[file] = strings.Replace(r.files[file], document, "", 1)
					r.remarks = append(r.remarks, fmt.Sprintf("%s %s in %s is left out, because Helm knows no hook %q%s", head.Kind, head.Metadata.Name, file, hook, instead(hook)))
					break
				}
			}
		}
	}
}

// instead says what to write in place of a hook that Helm does not know.
func instead(hook string) string {
	if hook == "crd-install" {
		return ": put the definition into the folder crds/ of the chart"
	}
	return ": it knows " + strings.Join(knownHooks[:len(knownHooks)-1], ", ")
}
