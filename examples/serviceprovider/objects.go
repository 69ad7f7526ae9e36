package postgres

import (
	"fmt"
	"net/url"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
)

const (
	// replicas is how many Pods a database has.
	replicas = 1
	// port is where databases listen.
	port = 5432
	// user is the user, and the database, that is there from the start.
	user = "pguser"
	// passwordKey is the entry of a Secret.
	passwordKey = "password"
)

// host is the name of a database in its workload cluster.
func host(db *v1alpha1.Postgres) string {
	return fmt.Sprintf("%s.%s.svc", db.Name, WorkloadNamespace(db.Namespace))
}

// labels are on everything that belongs to a database.
func labels(db *v1alpha1.Postgres) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "postgres", "app.kubernetes.io/instance": db.Name, "app.kubernetes.io/managed-by": Name + "-provider"}
}

// inWorkload names the objects of a database in its workload cluster.
func inWorkload(db *v1alpha1.Postgres) []client.Object {
	return []client.Object{
		statefulSet(db), adminSecret(db),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: WorkloadNamespace(db.Namespace), Name: pullName(db)}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: WorkloadNamespace(db.Namespace), Name: db.Name}},
	}
}

// inMCP names the objects of a database in its MCP.
func inMCP(db *v1alpha1.Postgres) []client.Object {
	return []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: ConnectionName(db)}}}
}

func statefulSet(db *v1alpha1.Postgres) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: WorkloadNamespace(db.Namespace), Name: db.Name}}
}

// adminSecret names the Secret with the password of a database.
func adminSecret(db *v1alpha1.Postgres) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: WorkloadNamespace(db.Namespace), Name: db.Name + "-admin"}}
}

// ConnectionName is the name of the Secret in the MCP with which a database is reached.
func ConnectionName(db *v1alpha1.Postgres) string { return db.Name + "-postgres" }

func pullName(db *v1alpha1.Postgres) string { return db.Name + "-pull" }

// newConnection is the Secret with which a database is reached.
func newConnection(db *v1alpha1.Postgres, password string) *corev1ac.SecretApplyConfiguration {
	address := url.URL{Scheme: "postgresql", User: url.UserPassword(user, password), Host: fmt.Sprintf("%s:%d", host(db), port), Path: "/" + user}
	return corev1ac.Secret(ConnectionName(db), db.Namespace).WithLabels(labels(db)).WithData(map[string][]byte{
		"host": []byte(host(db)), "port": fmt.Append(nil, port), "user": []byte(user), passwordKey: []byte(password), "uri": []byte(address.String()),
	})
}

// newAdminSecret is where the password of a database is kept.
func newAdminSecret(db *v1alpha1.Postgres, password string) *corev1ac.SecretApplyConfiguration {
	secret := adminSecret(db)
	return corev1ac.Secret(secret.Name, secret.Namespace).WithLabels(labels(db)).WithData(map[string][]byte{passwordKey: []byte(password)})
}

// newPullSecret is the copy of the pull Secret.
func newPullSecret(db *v1alpha1.Postgres, config []byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(pullName(db), WorkloadNamespace(db.Namespace)).WithLabels(labels(db)).
		WithType(corev1.SecretTypeDockerConfigJson).WithData(map[string][]byte{corev1.DockerConfigJsonKey: config})
}

// newService leads to a database.
func newService(db *v1alpha1.Postgres) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(db.Name, WorkloadNamespace(db.Namespace)).WithLabels(labels(db)).WithSpec(corev1ac.ServiceSpec().
		WithSelector(labels(db)).
		WithPorts(corev1ac.ServicePort().WithName("postgres").WithPort(port).WithTargetPort(intstr.FromString("postgres"))))
}

// newStatefulSet runs a database. Its disk goes when it goes.
func newStatefulSet(db *v1alpha1.Postgres, image string) *appsv1ac.StatefulSetApplyConfiguration {
	size := resource.NewQuantity(int64(db.Spec.StorageGiB)<<30, resource.BinarySI)
	password := corev1ac.EnvVar().WithName("POSTGRES_PASSWORD").WithValueFrom(corev1ac.EnvVarSource().
		WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(adminSecret(db).Name).WithKey(passwordKey)))
	container := corev1ac.Container().WithName("postgres").WithImage(image).WithEnv(corev1ac.EnvVar().WithName("POSTGRES_USER").WithValue(user), password).
		WithPorts(corev1ac.ContainerPort().WithName("postgres").WithContainerPort(port)).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("data").WithMountPath("/var/lib/postgresql"))
	disk := corev1ac.PersistentVolumeClaim("data", "").WithSpec(corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: *size})))
	disk.Namespace = nil
	return appsv1ac.StatefulSet(db.Name, WorkloadNamespace(db.Namespace)).WithLabels(labels(db)).WithSpec(appsv1ac.StatefulSetSpec().
		WithReplicas(replicas).WithServiceName(db.Name).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels(db))).
		WithPersistentVolumeClaimRetentionPolicy(appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().
			WithWhenDeleted(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)).
		WithVolumeClaimTemplates(disk).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels(db)).WithSpec(corev1ac.PodSpec().
			WithContainers(container).
			WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(pullName(db))))))
}
