package operatortest_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestInstancesSideBySideShareNothing(t *testing.T) {
	t.Parallel()
	one, other := operatortest.Start(t, operatortest.Dedicated()), operatortest.Start(t, operatortest.Dedicated())
	if one.RESTConfig().Host == other.RESTConfig().Host || one.DataDir() == other.DataDir() {
		t.Fatalf("both are %s in %s", one.RESTConfig().Host, one.DataDir())
	}
	createConfigMap(t, newClient(t, one.RESTConfig()), "default", "settings")
	if !configMapGone(t, newClient(t, other.RESTConfig()), "default", "settings") {
		t.Error("the object of one is in the other")
	}

	t.Run("nor do they trust each other's clients", func(t *testing.T) {
		stranger := one.RESTConfig()
		stranger.Host, stranger.CAData = other.RESTConfig().Host, other.RESTConfig().CAData
		_, err := newClient(t, stranger).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("a client of another instance: %v, want unauthorized", err)
		}
	})
	t.Run("nor do clients trust another instance", func(t *testing.T) {
		misled := one.RESTConfig()
		misled.Host = other.RESTConfig().Host
		_, err := newClient(t, misled).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if unverified := (*tls.CertificateVerificationError)(nil); !errors.As(err, &unverified) {
			t.Errorf("a server of another authority: %v, want its certificate not verified", err)
		}
	})
}

func TestAClientWithoutTheAuthorityIsNotServed(t *testing.T) {
	config := operatortest.Start(t).RESTConfig()
	config.CAData = nil
	_, err := newClient(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if unverified := (*tls.CertificateVerificationError)(nil); !errors.As(err, &unverified) {
		t.Errorf("%v, want the certificate not verified", err)
	}
}

func TestAnonymousClientsMayDoNothing(t *testing.T) {
	config := rest.AnonymousClientConfig(operatortest.Start(t).RESTConfig())
	_, err := newClient(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("%v, want forbidden", err)
	}
}

func TestUsersMayDoWhatTheyAreAllowedOnly(t *testing.T) {
	kube := operatortest.Start(t)
	for name, instance := range map[string]*operatortest.Instance{
		"by certificate":   kube,
		"by impersonation": foreign(t, kube),
	} {
		t.Run(name, func(t *testing.T) {
			namespace := kube.Namespace(t)
			admin := newClient(t, kube.RESTConfig())
			config, err := instance.User("jane", "readers-of-"+namespace)
			if err != nil {
				t.Fatal(err)
			}
			jane := newClient(t, config)
			list := func() error {
				_, err := jane.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
				return err
			}
			if err := list(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
				t.Errorf("list without a role: %v, want forbidden for jane", err)
			}

			_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "readers"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers-of-" + namespace}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			operatortest.Eventually(t, "jane may list", func() bool { return list() == nil })
			review, err := jane.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: "delete", Resource: "configmaps",
				}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed {
				t.Error("jane may delete, too")
			}
		})
	}
}

// foreign returns the instance as one that this package knows nothing of but a
// kubeconfig.
func foreign(t *testing.T, kube *operatortest.Instance) *operatortest.Instance {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kube.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Extensions = nil
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	instance, err := operatortest.Use(file)
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

func TestOnlyTheOwnerCanReadWhatIsSecret(t *testing.T) {
	kube := operatortest.Start(t)
	err := filepath.WalkDir(kube.DataDir(), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return nil // etcd's files come and go
		}
		if filepath.Ext(path) == ".snap" {
			return nil // etcd leaves the mode of its snapshots to the umask; their folder lets nobody else in
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
