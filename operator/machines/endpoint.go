package machines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// concerns tells whether the connection to a machine is concerned by a change.
func concerns(before, after *v1alpha1.Machine) bool {
	return before.UID != after.UID || before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels)
}

// secretOf returns the name of the Secret of a machine, and its keys.
func secretOf(m *v1alpha1.Machine) (name string, keys []string) {
	switch {
	case m.Spec.TLS != nil:
		return m.Spec.TLS.SecretName, []string{v1alpha1.CAKey, v1alpha1.CertificateKey, v1alpha1.PrivateKeyKey}
	case m.Spec.SSH != nil:
		return m.Spec.SSH.SecretName, []string{v1alpha1.SSHPrivateKeyKey, v1alpha1.SSHKnownHostsKey}
	}
	return "", nil
}

// machinesIn returns the Machines of a namespace.
func (e *engines) machinesIn(namespace string) []*v1alpha1.Machine {
	var in []*v1alpha1.Machine
	for _, obj := range e.machines.List() {
		if m := obj.(*v1alpha1.Machine); m.Namespace == namespace {
			in = append(in, m)
		}
	}
	return in
}

// named tells whether a machine names a Secret.
func (e *engines) named(secret informer.Key) bool {
	return slices.ContainsFunc(e.machinesIn(secret.Namespace), func(m *v1alpha1.Machine) bool {
		name, _ := secretOf(m)
		return name == secret.Name
	})
}

// connect makes the machines of a namespace those to which there are connections. A Secret that can't be read now says nothing about its
// machine: one that was connected to at the same address stays so, and the error says to try again. It is called by one goroutine.
func (e *engines) connect(ctx context.Context, namespace string) error {
	c, err := e.cluster(namespace)
	if err != nil {
		return err
	}
	machines, faulty := map[string]docker.Machine{}, map[string]api.Machine{}
	var unread []error
	for _, m := range e.machinesIn(namespace) {
		endpoint, err := endpointOf(ctx, e.d.Client, m)
		if failed := (*unreadError)(nil); errors.As(err, &failed) && !m.Spec.Gone {
			unread = append(unread, fmt.Errorf("machine %s: %w", m.Name, err))
			if had, ok := c.endpoint(m.Name); ok && had.Host == endpoint.Host {
				endpoint, err = had, nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !m.Spec.Gone:
			faulty[m.Name] = unknown(asDocker(m, endpoint), err)
		default:
			machines[m.Name] = asDocker(m, endpoint)
		}
	}
	for _, name := range c.set(machines, faulty) {
		e.tell(informer.Key{Namespace: namespace, Name: name}, "")
	}
	return errors.Join(unread...)
}

// asDocker returns a Machine as clients of engines know it.
func asDocker(m *v1alpha1.Machine, endpoint docker.Endpoint) docker.Machine {
	out := docker.Machine{ID: m.Name, Name: m.Name, Labels: m.Labels, Addresses: m.Spec.Addresses, MeshAddress: m.Spec.MeshAddress, Endpoint: endpoint, Gone: m.Spec.Gone}
	if m.Spec.Ingress != nil {
		out.Ingress = &docker.MachineIngress{HostIP: m.Spec.Ingress.HostIP}
	}
	return out
}

// ReadMachines returns the Machines of a namespace as clients of engines know them, with what their Secrets have, for who looks at them
// with a client of its own. Those that can't be connected to for want of that come back by name, with the reasons.
func ReadMachines(ctx context.Context, reader client.Reader, namespace string) ([]docker.Machine, map[string]error, error) {
	list := &v1alpha1.MachineList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("list the Machines of namespace %s: %w", namespace, err)
	}
	var machines []docker.Machine
	faulty := map[string]error{}
	for i := range list.Items {
		m := &list.Items[i]
		endpoint, err := endpointOf(ctx, reader, m)
		if err != nil && !m.Spec.Gone {
			faulty[m.Name] = err
			continue
		}
		machines = append(machines, asDocker(m, endpoint))
	}
	return machines, faulty, nil
}

// fields are what the parts of an endpoint are called in Secrets.
var fields = strings.NewReplacer("TLS.CA", v1alpha1.CAKey, "TLS.Cert", v1alpha1.CertificateKey, "TLS.Key", v1alpha1.PrivateKeyKey,
	"SSH.KnownHosts", v1alpha1.SSHKnownHostsKey, "SSH.Key", v1alpha1.SSHPrivateKeyKey)

// unreadError is that a Secret could not be read, which may be there and have what it should.
type unreadError struct {
	secret string
	err    error
}

// Error says which one, and why.
func (e *unreadError) Error() string { return fmt.Sprintf("read Secret %s: %s", e.secret, e.err) }

// Unwrap returns why.
func (e *unreadError) Unwrap() error { return e.err }

// endpointOf returns how a machine is reached. With an error there is the host alone; an unreadError ends by itself.
func endpointOf(ctx context.Context, reader client.Reader, m *v1alpha1.Machine) (docker.Endpoint, error) {
	endpoint := docker.Endpoint{Host: m.Spec.Address}
	name, keys := secretOf(m)
	if name == "" {
		return endpoint, nil
	}
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return endpoint, fmt.Errorf("there is no Secret %s; make it in namespace %s, with %s", name, m.Namespace, strings.Join(keys, ", "))
	}
	if err != nil {
		return endpoint, &unreadError{name, err}
	}
	missing := slices.DeleteFunc(keys, func(key string) bool { return len(secret.Data[key]) > 0 })
	if len(missing) > 0 {
		return endpoint, fmt.Errorf("the Secret %s has no %s", name, strings.Join(missing, ", "))
	}
	if m.Spec.TLS != nil {
		endpoint.TLS = &docker.TLS{
			CA: secret.Data[v1alpha1.CAKey], Cert: secret.Data[v1alpha1.CertificateKey], Key: api.Hidden(secret.Data[v1alpha1.PrivateKeyKey]),
		}
	} else {
		endpoint.SSH = &docker.SSH{Key: api.Hidden(secret.Data[v1alpha1.SSHPrivateKeyKey]), KnownHosts: secret.Data[v1alpha1.SSHKnownHostsKey]}
	}
	if err := endpoint.Validate(); err != nil {
		return endpoint, fmt.Errorf("the Secret %s is of no use: %s", name, fields.Replace(err.Error()))
	}
	return endpoint, nil
}
