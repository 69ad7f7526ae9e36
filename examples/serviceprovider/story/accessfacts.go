package story

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// ids are those of the clusters of a database.
var ids = []string{clusteraccess.MCP, clusteraccess.Workload}

// credentials are what was issued for a cluster of a database.
type credentials struct {
	secret  *corev1.Secret
	config  *rest.Config
	account *corev1.ServiceAccount
	expires metav1.Time
}

// asked returns what was asked for a database, by the ids of its clusters, in a list of the platform cluster.
func asked[O client.Object](ctx context.Context, w *world, db *v1alpha1.Postgres, list client.ObjectList) (map[string]O, error) {
	if err := w.Client.List(ctx, list, client.InNamespace(postgres.Namespace)); err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	found := map[string]O{}
	for _, obj := range objects {
		o := obj.(O)
		if o.GetAnnotations()[clusteraccess.ObjectAnnotation] == client.ObjectKeyFromObject(db).String() {
			found[o.GetLabels()[clusteraccess.AccessLabel]] = o
		}
	}
	return found, nil
}

// clusterRequest returns the request for a cluster of a database.
func (w *world) clusterRequest(ctx context.Context, db *v1alpha1.Postgres, id string) (*clustersv1alpha1.ClusterRequest, error) {
	found, err := asked[*clustersv1alpha1.ClusterRequest](ctx, w, db, &clustersv1alpha1.ClusterRequestList{})
	if err == nil && found[id] == nil {
		err = fmt.Errorf("nobody has asked for the %s cluster of %s yet", id, db.Name)
	}
	return found[id], err
}

// placed tells whether a database was given these clusters, by their ids.
func (w *world) placed(ctx context.Context, db *v1alpha1.Postgres, want map[string]string) error {
	for id, name := range want {
		request, err := w.clusterRequest(ctx, db, id)
		if err != nil {
			return err
		}
		if request.Status.ClusterRef == nil || request.Status.ClusterRef.Name != name {
			return fmt.Errorf("the %s cluster of %s is not %s: %+v", id, db.Name, name, request.Status)
		}
	}
	return nil
}

// granted tells whether a database has access to both clusters, for not longer than an hour.
func (w *world) granted(ctx context.Context, db *v1alpha1.Postgres) error {
	found, err := w.credentials(ctx, db)
	for id, c := range found {
		if life := c.expires.Sub(c.account.CreationTimestamp.Time); life <= 0 || life.Hours() > 1.1 {
			err = errors.Join(err, fmt.Errorf("the credentials of %s for %s live %s", db.Name, id, life))
		}
	}
	return err
}

// credentials returns what was issued for a database, by the ids of its clusters, or an error if it is not granted.
func (w *world) credentials(ctx context.Context, db *v1alpha1.Postgres) (map[string]credentials, error) {
	requests, err := asked[*clustersv1alpha1.AccessRequest](ctx, w, db, &clustersv1alpha1.AccessRequestList{})
	if err != nil {
		return nil, err
	}
	found := map[string]credentials{}
	for _, id := range ids {
		ar := requests[id]
		if ar == nil || ar.Status.Phase != clustersv1alpha1.PhaseGranted || ar.Status.SecretRef == nil {
			return nil, fmt.Errorf("access to the %s cluster of %s is not granted", id, db.Name)
		}
		c := credentials{secret: &corev1.Secret{}, account: &corev1.ServiceAccount{}, expires: *ar.Status.ExpirationTime}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: postgres.Namespace, Name: ar.Status.SecretRef.Name}, c.secret); err != nil {
			return nil, err
		}
		if c.config, err = clientcmd.RESTConfigFromKubeConfig(c.secret.Data[clustersv1alpha1.KubeconfigKey]); err != nil {
			return nil, err
		}
		account := client.ObjectKey{Namespace: ar.Status.ServiceAccount.Namespace, Name: ar.Status.ServiceAccount.Name}
		if err := w.clusterOf(id).Get(ctx, account, c.account); err != nil {
			return nil, err
		}
		found[id] = c
	}
	return found, nil
}

// clusterOf returns the administrator's client for a cluster by its id.
func (w *world) clusterOf(id string) client.Client {
	if id == clusteraccess.MCP {
		return w.mcp
	}
	return w.workload
}

// replaced tells whether there are other credentials than those before, which are good and don't run out before them.
func (w *world) replaced(ctx context.Context, db *v1alpha1.Postgres, id string, before credentials) error {
	all, err := w.credentials(ctx, db)
	if err != nil {
		return err
	}
	now := all[id]
	switch {
	case bytes.Equal(now.secret.Data[clustersv1alpha1.KubeconfigKey], before.secret.Data[clustersv1alpha1.KubeconfigKey]):
		return errors.New("the credentials are the same")
	case now.expires.Before(&before.expires):
		return fmt.Errorf("the credentials expire at %s, those before at %s", now.expires, before.expires)
	}
	c, err := w.newClient(now.config)
	if err != nil {
		return err
	}
	if err := forbidden(c.List(ctx, &corev1.SecretList{})); err != nil { // it is known who asks
		return fmt.Errorf("the new credentials are not accepted: %w", err)
	}
	return nil
}

// refused tells whether credentials are of no use any more. API servers remember for some seconds that a token was good.
func (w *world) refused(ctx context.Context, config *rest.Config) error {
	c, err := w.newClient(config)
	if err != nil {
		return err
	}
	if err := c.List(ctx, &corev1.SecretList{}); !apierrors.IsUnauthorized(err) {
		return errors.Join(errors.New("a token is not refused"), err)
	}
	return nil
}

// leastPrivilege tells whether the credentials of a database allow what the provider needs, and are refused for more.
func (w *world) leastPrivilege(ctx context.Context, db *v1alpha1.Postgres) error {
	found, err := w.credentials(ctx, db)
	if err != nil {
		return err
	}
	clients := map[string]client.Client{}
	for id, c := range found {
		if clients[id], err = w.newClient(c.config); err != nil {
			return err
		}
	}
	inWorkload, neighbour := postgres.WorkloadNamespace(db.Namespace), reports
	errs := []error{
		clients[clusteraccess.Workload].Get(ctx, client.ObjectKey{Namespace: inWorkload, Name: db.Name}, &appsv1.StatefulSet{}),
		clients[clusteraccess.MCP].Get(ctx, client.ObjectKey{Namespace: db.Namespace, Name: postgres.ConnectionName(db)}, &corev1.Secret{}),
	}
	for id, more := range map[string]struct{ own, others string }{
		clusteraccess.Workload: {inWorkload, postgres.WorkloadNamespace(neighbour.Namespace)},
		clusteraccess.MCP:      {db.Namespace, neighbour.Namespace},
	} {
		c := clients[id]
		for what, err := range map[string]error{
			"listing its own Secrets":        c.List(ctx, &corev1.SecretList{}, client.InNamespace(more.own)),
			"listing all Secrets":            c.List(ctx, &corev1.SecretList{}),
			"reading Secrets of a neighbour": c.Get(ctx, client.ObjectKey{Namespace: more.others, Name: "x"}, &corev1.Secret{}),
			"making a ConfigMap":             c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: more.own, Name: "x"}}),
		} {
			if err := forbidden(err); err != nil {
				errs = append(errs, fmt.Errorf("%s in the %s cluster: %w", what, id, err))
			}
		}
	}
	return errors.Join(errs...)
}

// noAccess tells whether nothing is left of the access of a database: what was asked for and issued on the platform, and the
// service accounts, roles and bindings in the clusters.
func (w *world) noAccess(ctx context.Context, db *v1alpha1.Postgres, before map[string]credentials) error {
	requests, err := asked[*clustersv1alpha1.ClusterRequest](ctx, w, db, &clustersv1alpha1.ClusterRequestList{})
	if err != nil {
		return err
	}
	access, err := asked[*clustersv1alpha1.AccessRequest](ctx, w, db, &clustersv1alpha1.AccessRequestList{})
	if err != nil {
		return err
	}
	var errs []error
	if n := len(requests) + len(access); n > 0 {
		errs = append(errs, fmt.Errorf("%d requests of %s are left", n, db.Name))
	}
	for id, c := range before {
		in := w.clusterOf(id)
		errs = append(errs,
			gone(w.Client.Get(ctx, client.ObjectKeyFromObject(c.secret), &corev1.Secret{})),
			gone(in.Get(ctx, client.ObjectKeyFromObject(c.account), &corev1.ServiceAccount{})),
		)
		namespace := db.Namespace
		if id == clusteraccess.Workload {
			namespace = postgres.WorkloadNamespace(db.Namespace)
		}
		for _, kind := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
			if err := in.List(ctx, kind, client.InNamespace(namespace)); err != nil {
				return err
			}
			if n := meta.LenList(kind); n > 0 {
				errs = append(errs, fmt.Errorf("%d objects are left in a %T of namespace %s in the %s cluster", n, kind, namespace, id))
			}
		}
	}
	return errors.Join(errs...)
}
