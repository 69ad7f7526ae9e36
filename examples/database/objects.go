package main

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
)

const port = 5432

// names are those of the services that lead to a Database from outside, by the version of the logic.
func names(version string, db *v1alpha1.Database) []string {
	if version == "v2" {
		return []string{db.Name, db.Name + "-read"}
	}
	return []string{db.Name}
}

// objects are what a Database becomes in the cluster.
func objects(version string, db *v1alpha1.Database) []client.Object {
	desired := []client.Object{newService(db, db.Name+"-nodes", corev1.ClusterIPNone), newStatefulSet(db)}
	for _, name := range names(version, db) {
		desired = append(desired, newService(db, name, ""))
	}
	if db.Spec.Backup != "" {
		desired = append(desired, newBackup(db))
	}
	return desired
}

func newService(db *v1alpha1.Database, name, clusterIP string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: clusterIP, Selector: map[string]string{"database": db.Name}, Ports: []corev1.ServicePort{{Name: "sql", Port: port}},
		},
	}
}

func newStatefulSet(db *v1alpha1.Database) *appsv1.StatefulSet {
	labels := map[string]string{"database": db.Name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &db.Spec.Replicas, ServiceName: db.Name + "-nodes", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "postgres", Image: "postgres:" + db.Spec.Version, Env: password(db, "POSTGRES_PASSWORD"),
				Ports:        []corev1.ContainerPort{{Name: "sql", ContainerPort: port}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/postgresql/data"}},
			}}}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: db.Spec.Storage}},
				},
			}},
		},
	}
}

func newBackup(db *v1alpha1.Database) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name + "-backup"},
		Spec: batchv1.CronJobSpec{
			Schedule: db.Spec.Backup, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "backup", Image: "postgres:" + db.Spec.Version, Env: password(db, "PGPASSWORD"),
					Command: []string{"pg_dumpall", "--host", db.Name, "--username", "postgres", "--file", "/backups/all.sql"},
				}},
			}}}},
		},
	}
}

func password(db *v1alpha1.Database, variable string) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: db.Spec.Password}, Key: "password",
	}}}}
}
