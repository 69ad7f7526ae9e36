package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	for _, c := range planes {
		if err := c.kube.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if err := operatortest.FindLeaks(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", err)
		code = 1
	}
	os.Exit(code)
}

// plane is the API server of one role, and its user.
type plane struct {
	kube *operatortest.Instance
	user client.Client
}

// The roles, each of which has a control plane of its own.
const (
	platform   = "platform"
	onboarding = "onboarding"
	mcp        = "mcp"
	workload   = "workload"
)

var (
	scheme = runtime.NewScheme()
	planes = map[string]*plane{}

	startPlanes = sync.OnceValue(func() error {
		scheme.AddKnownTypes(servicesGroup, &Postgres{}, &PostgresList{}, &Backup{}, &ProviderConfig{}, &ProviderConfigList{})
		metav1.AddToGroupVersion(scheme, servicesGroup)
		if err := errors.Join(clientgoscheme.AddToScheme(scheme), clustersv1alpha1.AddToScheme(scheme)); err != nil {
			return err
		}
		var mu sync.Mutex
		var errs []error
		var starting sync.WaitGroup
		for _, role := range []string{platform, onboarding, mcp, workload} {
			starting.Go(func() {
				p, err := startPlane()
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
				if p != nil {
					planes[role] = p
				}
			})
		}
		starting.Wait()
		return errors.Join(errs...)
	})
)

func startPlane() (*plane, error) {
	kube, err := operatortest.Run(context.Background(), operatortest.Config{})
	if err != nil {
		return nil, err
	}
	p := &plane{kube: kube}
	p.user, err = client.New(kube.RESTConfig(), client.Options{Scheme: scheme})
	return p, err
}

// allPlanes starts the control planes, once for all tests, and has the definitions installed where they belong.
func allPlanes(t *testing.T) {
	t.Helper()
	if err := startPlanes(); err != nil {
		t.Fatal(err)
	}
	installCRDs(t)
}

var crdsInstalled bool

func installCRDs(t *testing.T) {
	t.Helper()
	if crdsInstalled {
		return
	}
	ours, err := operator.ReadCRDs(os.DirFS("testdata/crds"))
	if err != nil {
		t.Fatal(err)
	}
	access, err := operator.ReadCRDs(clustersv1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	planes[onboarding].kube.InstallCRDs(t, ours[0])
	planes[platform].kube.InstallCRDs(t, append(access, ours[1])...)
	crdsInstalled = true
}

// adminOf returns the configuration of a role with all rights, without limits.
func adminOf(role string) *rest.Config { return planes[role].kube.RESTConfig() }
