package command

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/oncall"
)

// What a Pod asks for, beside the memory of the page, and how long it may take to end beyond the times of its reconciliations.
const (
	requestedCPU    = "50m"
	requestedMemory = "64Mi"
	limitedMemory   = 192 << 20
	endingTime      = 20 * time.Second
)

// The names of ports.
const (
	healthPort = "http"
	pagePort   = "inspector"
)

// nameLabel selects what belongs to the operator.
const nameLabel = "app.kubernetes.io/name"

// delegator is Kubernetes' own cluster role for those who ask who somebody is, and what he may.
const delegator = "system:auth-delegator"

// orAll returns namespaces, of which none stand for all, as names.
func orAll(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return namespaces
}

// allow adds rules in a namespace.
func (d *deployment) allow(namespace string, rules ...rbacv1.PolicyRule) {
	if len(rules) > 0 {
		d.rights.In[namespace] = append(d.rights.In[namespace], rules...)
	}
}

func (d *deployment) labels() map[string]string { return map[string]string{nameLabel: d.name} }

// in is the metadata of an object in a namespace, or of one without for an empty one.
func (d *deployment) in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: d.labels()}
}

func (d *deployment) own() metav1.ObjectMeta { return d.in(d.namespace, d.name) }

// home is the namespace of the operator, in which nothing runs but what keeps to the strictest level of Pod Security.
func (d *deployment) home() client.Object {
	n := &corev1.Namespace{ObjectMeta: d.in("", d.namespace)}
	n.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	return n
}

func (d *deployment) account() client.Object { return &corev1.ServiceAccount{ObjectMeta: d.own()} }

// roles are the rights of the operator, each with its binding.
func (d *deployment) roles() []client.Object {
	var objects []client.Object
	for _, namespace := range slices.Sorted(maps.Keys(d.rights.In)) {
		objects = append(objects, d.role(d.in(namespace, d.name), d.rights.In[namespace])...)
	}
	if len(d.rights.Own) > 0 {
		objects = append(objects, d.role(d.in(d.namespace, d.name+"-lease"), d.rights.Own)...)
	}
	if d.delegates {
		objects = append(objects, d.binding(d.in("", d.name+"-delegator"), "ClusterRole", delegator))
	}
	return objects
}

func (d *deployment) role(metadata metav1.ObjectMeta, rules []rbacv1.PolicyRule) []client.Object {
	if metadata.Namespace == "" {
		return []client.Object{&rbacv1.ClusterRole{ObjectMeta: metadata, Rules: rules}, d.binding(metadata, "ClusterRole", metadata.Name)}
	}
	return []client.Object{&rbacv1.Role{ObjectMeta: metadata, Rules: rules}, d.binding(metadata, "Role", metadata.Name)}
}

func (d *deployment) binding(metadata metav1.ObjectMeta, kind, role string) client.Object {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: d.namespace, Name: d.name}}
	if metadata.Namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metadata, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{ObjectMeta: metadata, RoleRef: ref, Subjects: subjects}
}

// workload is the Deployment.
func (d *deployment) workload() client.Object {
	o := d.program.options
	w := &appsv1.Deployment{ObjectMeta: d.own(), Spec: appsv1.DeploymentSpec{
		Replicas: new(d.options.replicas),
		Selector: &metav1.LabelSelector{MatchLabels: d.labels()},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: d.labels()}, Spec: corev1.PodSpec{
			ServiceAccountName:            d.name,
			TerminationGracePeriodSeconds: new(int64(d.gracePeriod() / time.Second)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{d.spread(corev1.LabelTopologyZone), d.spread(corev1.LabelHostname)},
			Containers:                []corev1.Container{d.container()},
		}},
	}}
	w.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	if !o.election.Enabled {
		// Two Pods at the same time would both write.
		w.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	}
	if d.page > 0 {
		certificate := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: d.pageSecret()}}
		w.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: pagePort, VolumeSource: certificate}}
	}
	if d.guards != "" {
		d.mountGuards(&w.Spec.Template)
	}
	return w
}

// gracePeriod is how long a Pod may take to end.
func (d *deployment) gracePeriod() time.Duration {
	o := d.program.options
	period := o.shutdownTimeout + framework.DefaultCancelTimeout + endingTime
	if o.sharding {
		// It works on until others have what it had, see operator.ShardingConfig.
		period += o.election.LeaseDuration
	}
	return period
}

// spread keeps Pods apart where that is possible.
func (d *deployment) spread(over string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: over, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: d.labels()},
	}
}

func (d *deployment) container() corev1.Container {
	o := &d.program.options
	memory := int64(limitedMemory)
	if o.inspectorAddress != "" {
		memory += o.inspectorMemory.Value()
	}
	c := corev1.Container{
		Name: "operator", Image: d.options.image, Args: d.args,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(requestedCPU), corev1.ResourceMemory: resource.MustParse(requestedMemory),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if d.health > 0 {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: healthPort, ContainerPort: d.health})
		c.LivenessProbe, c.ReadinessProbe = probe("/healthz", 20), probe("/readyz", 10)
	}
	if d.page > 0 {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: pagePort, ContainerPort: d.page})
		c.VolumeMounts = []corev1.VolumeMount{{Name: pagePort, MountPath: path.Dir(o.inspectorCert), ReadOnly: true}}
	}
	return c
}

func probe(path string, seconds int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(healthPort)}},
		PeriodSeconds: seconds, TimeoutSeconds: 5,
	}
}

// budget lets Pods be evicted one by one.
func (d *deployment) budget() client.Object {
	return &policyv1.PodDisruptionBudget{ObjectMeta: d.own(), Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: d.labels()},
	}}
}

// served are the ports that others reach, by name.
func (d *deployment) served() map[string]int32 {
	ports := map[string]int32{healthPort: d.health, pagePort: d.page}
	maps.DeleteFunc(ports, func(_ string, port int32) bool { return port == 0 })
	return ports
}

func (d *deployment) service() client.Object {
	s := &corev1.Service{ObjectMeta: d.own(), Spec: corev1.ServiceSpec{Selector: d.labels()}}
	for _, name := range slices.Sorted(maps.Keys(d.served())) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name, Port: d.served()[name], TargetPort: intstr.FromString(name)})
	}
	return s
}

// policy lets nobody in but to the ports that are served. Where the operator goes is not limited: nobody knows where the API server is, and
// what else it talks to.
func (d *deployment) policy() client.Object {
	p := &networkingv1.NetworkPolicy{ObjectMeta: d.own(), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: d.labels()}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}}
	for _, name := range slices.Sorted(maps.Keys(d.served())) {
		port := networkingv1.NetworkPolicyPort{Port: new(intstr.FromString(name))}
		p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{port}})
	}
	return p
}

// monitor has the Prometheus Operator collect the metrics of each Pod. Its types are not compiled into every operator.
func (d *deployment) monitor() map[string]any {
	endpoint := map[string]any{"port": healthPort, "path": "/metrics"}
	if d.program.options.authorizeMetrics {
		endpoint["bearerTokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	}
	labels := map[string]any{nameLabel: d.name}
	return map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
		"metadata": map[string]any{"name": d.name, "namespace": d.namespace, "labels": labels},
		"spec":     map[string]any{"selector": map[string]any{"matchLabels": labels}, "endpoints": []any{endpoint}},
	}
}

// rules has the Prometheus Operator evaluate the alert rules of every operator for this one, whose job is the name of its Service.
func (d *deployment) rules() map[string]any {
	return map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": map[string]any{"name": d.name, "namespace": d.namespace, "labels": map[string]any{nameLabel: d.name}},
		"spec":     oncall.Rules(d.name),
	}
}

// manifestFile is a file of a folder of manifests.
type manifestFile struct {
	name    string
	objects []map[string]any
}

// objectGroup are objects of one file.
type objectGroup struct {
	name    string
	objects []client.Object
}

func (g objectGroup) file() (manifestFile, error) {
	file := manifestFile{name: g.name + ".yaml"}
	for _, o := range g.objects {
		object, err := manifest(o)
		if err != nil {
			return file, fmt.Errorf("make the manifest of the %T %s: %w", o, o.GetName(), err)
		}
		file.objects = append(file.objects, object)
	}
	return file, nil
}

// files are all manifests, in the order in which they are applied.
func (d *deployment) files() ([]manifestFile, error) {
	var files []manifestFile
	for _, crd := range d.program.config.CRDs {
		object, err := manifest(crd)
		if err != nil {
			return nil, fmt.Errorf("make the manifest of custom resource definition %s: %w", crd.Name, err)
		}
		files = append(files, manifestFile{path.Join(crdFolder, crd.Name+".yaml"), []map[string]any{object}})
	}
	groups := []objectGroup{
		{"serviceaccount", []client.Object{d.account()}},
		{"rbac", d.roles()},
		{"deployment", []client.Object{d.workload()}},
		{"poddisruptionbudget", []client.Object{d.budget()}},
		{"networkpolicy", []client.Object{d.policy()}},
	}
	if d.options.into == "" {
		groups = slices.Insert(groups, 0, objectGroup{namespaceFile, []client.Object{d.home()}})
	}
	if d.guards != "" {
		groups = append(groups, objectGroup{"guards", []client.Object{d.guardsMap()}})
	}
	if len(d.served()) > 0 {
		groups = append(groups, objectGroup{"service", []client.Object{d.service()}})
	}
	for _, group := range groups {
		file, err := group.file()
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if d.options.monitoring && d.health > 0 {
		files = append(files, manifestFile{"servicemonitor.yaml", []map[string]any{d.monitor()}},
			manifestFile{"prometheusrule.yaml", []map[string]any{d.rules()}})
	}
	return files, nil
}
