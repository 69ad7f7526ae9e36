package framework_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// entitled is a resource that changes objects, after it has asked by a dry run what would change, and their status.
type entitled struct{ dataTeller }

func (*entitled) Rights() []framework.Right {
	return []framework.Right{
		{Verbs: []string{"get", "list", "create", "patch", "delete"}, DryRun: []string{"patch"}},
		{Subresource: "status", Verbs: []string{"patch"}},
	}
}

func TestRightsOfWhatIsOnlyPlannedAreToReadAndToAskByDryRuns(t *testing.T) {
	resources := []framework.Resource{&entitled{}}
	all := [][]string{{"get", "list", "create", "patch", "delete"}, {"patch"}}
	planning := [][]string{{"get", "list", "patch"}}
	for name, tt := range map[string]struct {
		config framework.Config
		want   [][]string
	}{
		"of what works": {framework.Config{ResourceRouter: routerOf(t, framework.ResourceSetConfig{Resources: resources})}, all},
		"with PlanOnly": {framework.Config{PlanOnly: true, ResourceRouter: routerOf(t, framework.ResourceSetConfig{Resources: resources})}, planning},
		"of a shadow": {framework.Config{ResourceRouter: routerOf(t,
			framework.ResourceSetConfig{Name: "v1", Resources: []framework.Resource{&dataTeller{}}},
			framework.ResourceSetConfig{Name: "v2", Shadow: true, Resources: resources})}, planning},
	} {
		t.Run(name, func(t *testing.T) {
			tt.config.Source = informer.NewPush("objects")
			var got [][]string
			for _, right := range newFramework(t, tt.config).Rights() {
				got = append(got, right.Verbs)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
		})
	}
}
