package operatortest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WorkloadControllers are the controllers by which workloads run their pods, and those that mind what goes with these. They are for
// Config.Controllers, together with [RunNode], which plays the node.
func WorkloadControllers() []string {
	return []string{
		"deployment-controller", "replicaset-controller", "replicationcontroller-controller", "statefulset-controller", "daemonset-controller",
		"job-controller", "cronjob-controller", "ttl-after-finished-controller", "disruption-controller",
		"endpoints-controller", "endpointslice-controller", "persistentvolumeclaim-protection-controller",
	}
}

// DefaultNodeName is the default of NodeConfig.Name.
const DefaultNodeName = "node"

// NodeConfig configures [RunNode]. The zero value is good for most.
type NodeConfig struct {
	// Name is the name of the node. Default: DefaultNodeName.
	Name string
	// Phase says what becomes of a pod that is on the node: it is running and ready, succeeded or failed. With "" it stays pending.
	// Default: PhaseOf.
	Phase func(*corev1.Pod) corev1.PodPhase
}

// PhaseOf is what becomes of a pod by default: one that is to end, such as one of a Job, has succeeded; others are running.
func PhaseOf(pod *corev1.Pod) corev1.PodPhase {
	if policy := pod.Spec.RestartPolicy; policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure {
		return corev1.PodSucceeded
	}
	return corev1.PodRunning
}

// RunNode stands in for a scheduler, a node and its kubelet, until ctx ends: pods are bound to the node, wherever they ask to be, become
// what NodeConfig.Phase says without that anything is run, and go when they are deleted. Claims of volumes are bound too. With the
// [WorkloadControllers], Deployments become available and Jobs complete.
//
// What a kubelet would look at is not looked at: images, probes, and the Secrets and ConfigMaps of volumes. The error is for a node that
// could not be made.
func RunNode(ctx context.Context, config *rest.Config, node NodeConfig) error {
	if node.Name == "" {
		node.Name = DefaultNodeName
	}
	if node.Phase == nil {
		node.Phase = PhaseOf
	}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("run node %s: %w", node.Name, err)
	}
	defer utilnet.CloseIdleConnectionsFor(connections.Transport)
	c, err := newUser(config, connections, nil)
	if err != nil {
		return fmt.Errorf("run node %s: %w", node.Name, err)
	}
	k := &kubelet{NodeConfig: node, client: c, address: netip.MustParseAddr("10.244.0.0")}
	if err := k.register(ctx); err != nil {
		return fmt.Errorf("run node %s: %w", node.Name, err)
	}
	var claims sync.WaitGroup
	claims.Go(func() { k.follow(ctx, &corev1.PersistentVolumeClaimList{}, k.claim) })
	k.follow(ctx, &corev1.PodList{}, k.pod)
	claims.Wait()
	return nil
}

// kubelet is a node at work.
type kubelet struct {
	NodeConfig
	client client.WithWatch
	// address is that of the last pod.
	address netip.Addr
}

// register makes the node, with room for everything.
func (k *kubelet) register(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.Name, Labels: map[string]string{
		corev1.LabelHostname: k.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
	}}}
	if err := k.client.Create(ctx, node); apierrors.IsAlreadyExists(err) {
		err = k.client.Get(ctx, client.ObjectKeyFromObject(node), node)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("10k"),
	}
	node.Status.Capacity, node.Status.Allocatable = room, room
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: loopback}, {Type: corev1.NodeHostName, Address: k.Name}}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	if err := k.client.Status().Update(ctx, node); err != nil {
		return err
	}
	// The API server gives a new node a taint until somebody has seen it ready: the controllers of daemons go by it.
	node.Spec.Taints = nil
	return k.client.Update(ctx, node)
}

// follow hands over each object of a kind, as it is and whenever it changes, until ctx ends. After an error, and at the end of a watch, all
// are looked at again.
func (k *kubelet) follow(ctx context.Context, list client.ObjectList, handle func(context.Context, client.Object) error) {
	for ctx.Err() == nil {
		_ = k.round(ctx, list, handle)
		select {
		case <-ctx.Done():
		case <-time.After(longestPause):
		}
	}
}

// round is follow until the first error, or until the watch ends.
func (k *kubelet) round(ctx context.Context, list client.ObjectList, handle func(context.Context, client.Object) error) error {
	if err := k.client.List(ctx, list); err != nil {
		return err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var failed []error
	for _, object := range objects {
		failed = append(failed, ignoreConflict(handle(ctx, object.(client.Object))))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	events, err := k.client.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type != watch.Added && event.Type != watch.Modified {
			continue
		}
		if err := ignoreConflict(handle(ctx, event.Object.(client.Object))); err != nil {
			return err
		}
	}
	return nil
}

// ignoreConflict forgives that somebody else was quicker: another event tells of it.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// pod takes the next step with a pod.
func (k *kubelet) pod(ctx context.Context, object client.Object) error {
	pod := object.(*corev1.Pod)
	switch {
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0:
		return k.client.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: k.Name}})
	case pod.Spec.NodeName != k.Name:
		return nil
	case pod.DeletionTimestamp != nil:
		return k.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	}
	phase := k.Phase(pod)
	if pod.Status.Phase == phase || phase == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	told := pod.DeepCopy()
	k.tell(told, phase)
	return k.client.Status().Update(ctx, told)
}

// tell makes the status of a pod as a kubelet would.
func (k *kubelet) tell(pod *corev1.Pod, phase corev1.PodPhase) {
	now := metav1.Now()
	status := &pod.Status
	status.Phase, status.HostIP = phase, loopback
	if status.StartTime == nil {
		status.StartTime = &now
	}
	if status.PodIP == "" {
		k.address = k.address.Next()
		status.PodIP = k.address.String()
	}
	ready := corev1.PodCondition{Status: corev1.ConditionTrue}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
	state := running
	switch phase {
	case corev1.PodSucceeded:
		ready.Status, ready.Reason, state = corev1.ConditionFalse, "PodCompleted", ended
	case corev1.PodFailed:
		ready.Status, ready.Reason = corev1.ConditionFalse, "PodFailed"
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: now, FinishedAt: now}}
	}
	status.Conditions = nil
	for _, condition := range []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
		{Type: corev1.ContainersReady, Status: ready.Status, Reason: ready.Reason}, {Type: corev1.PodReady, Status: ready.Status, Reason: ready.Reason},
	} {
		condition.LastTransitionTime = now
		status.Conditions = append(status.Conditions, condition)
	}
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			status.InitContainerStatuses = append(status.InitContainerStatuses, statusOf(c, state))
		} else {
			status.InitContainerStatuses = append(status.InitContainerStatuses, statusOf(c, ended))
		}
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, statusOf(c, state))
	}
}

func statusOf(container corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	started := state.Running != nil
	return corev1.ContainerStatus{Name: container.Name, Image: container.Image, State: state, Ready: started, Started: &started}
}

// claim tells that a claim has a volume.
func (k *kubelet) claim(ctx context.Context, object client.Object) error {
	claim := object.(*corev1.PersistentVolumeClaim)
	if claim.Status.Phase == corev1.ClaimBound || claim.DeletionTimestamp != nil {
		return nil
	}
	told := claim.DeepCopy()
	told.Status.Phase, told.Status.AccessModes, told.Status.Capacity = corev1.ClaimBound, claim.Spec.AccessModes, claim.Spec.Resources.Requests
	return k.client.Status().Update(ctx, told)
}
