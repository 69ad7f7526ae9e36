package statemanagers

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// TestALookAtTheOtherSetsOfAClusterTakesNothingForThoseOfOthers compares what is allocated for three sets of a cluster while there are few sets
// of other clusters, and while there are many.
func TestALookAtTheOtherSetsOfAClusterTakesNothingForThoseOfOthers(t *testing.T) {
	server := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	server.InstallCRDs(t, crds...)
	namespace, scheme := server.Namespace(t), runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	logger, err := logging.New(logging.Config{Writer: t.Output(), Format: logging.FormatText})
	if err != nil {
		t.Fatal(err)
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "test", RESTConfig: server.RESTConfig(), Scheme: scheme, Logger: logger, Namespaces: []string{namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer deps.Close()
	shared, err := servicesets.NewSources(deps, namespace)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- shared.Sets.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if err := shared.Sets.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	user := operatortest.NewClient(t, server.RESTConfig(), scheme)
	made := 0
	create := func(cluster string) *v1alpha1.ServiceSet {
		t.Helper()
		made++
		set := &v1alpha1.ServiceSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("set-%03d", made)},
			Spec:       v1alpha1.ServiceSetSpec{Cluster: cluster, MultiClusterService: fmt.Sprintf("mcs-%03d", made)},
		}
		if err := user.Create(ctx, set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	s := &sources{sets: shared.Sets}
	first := create("one")
	create("one")
	create("one")
	measured := func(others int) float64 {
		t.Helper()
		for made < 3+others {
			create(fmt.Sprintf("other-%d", made))
		}
		operatortest.Eventually(t, "all sets are known", func() bool { return shared.Sets.Status().Objects == made })
		return testing.AllocsPerRun(20, func() {
			if sets, err := s.others(first); err != nil || len(sets) != 2 || sets[0].Name != "set-002" || sets[1].Name != "set-003" {
				t.Fatalf("the others are %v, %v", sets, err)
			}
		})
	}
	if few, many := measured(5), measured(60); many > few+5 {
		t.Errorf("%v allocations beside 5 sets of other clusters, and %v beside 60", few, many)
	}
}
