package clusteraccess_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	serverspdy "k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// node is where an API server looks for the kubelet of a node: what a program in a pod is told comes back in capitals, and what is sent to a
// port of it as it is.
func (w *world) node(name string) {
	w.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		serve, protocols := execute, []string{"v4.channel.k8s.io"}
		if strings.HasPrefix(r.URL.Path, "/portForward/") {
			serve, protocols = forward, []string{portforward.PortForwardProtocolV1Name}
		}
		if _, err := httpstream.Handshake(r, rw, protocols); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		streams := make(chan httpstream.Stream, 10)
		connection := serverspdy.NewResponseUpgrader().UpgradeResponse(rw, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		})
		if connection == nil {
			return
		}
		defer func() { _ = connection.Close() }()
		by := map[string]httpstream.Stream{}
		for !serve(by) {
			select {
			case s := <-streams:
				by[s.Headers().Get(corev1.StreamType)] = s
			case <-connection.CloseChan():
				return
			}
		}
		<-connection.CloseChan()
	}))
	w.t.Cleanup(server.Close)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.admin.Create(w.t.Context(), node); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.admin.Delete(context.WithoutCancel(w.t.Context()), node); err != nil {
			w.t.Error(err)
		}
	})
	address := server.Listener.Addr().(*net.TCPAddr)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port)
	if err := w.admin.Status().Update(w.t.Context(), node); err != nil {
		w.t.Fatal(err)
	}
}

// execute runs the program once all of its streams are there, and tells whether they are.
func execute(streams map[string]httpstream.Stream) bool {
	in, out, failure := streams[corev1.StreamTypeStdin], streams[corev1.StreamTypeStdout], streams[corev1.StreamTypeError]
	if in == nil || out == nil || failure == nil {
		return false
	}
	if text, err := io.ReadAll(in); err == nil {
		_, _ = out.Write(bytes.ToUpper(text)) // that it is not there is seen
	}
	_ = errors.Join(out.Close(), failure.Close()) // that nothing was written to it is success
	return true
}

// forward sends back what comes to the port, once its streams are there, and tells whether they are.
func forward(streams map[string]httpstream.Stream) bool {
	data, failure := streams[corev1.StreamTypeData], streams[corev1.StreamTypeError]
	if data == nil || failure == nil {
		return false
	}
	_, _ = io.Copy(data, data)
	_ = errors.Join(data.Close(), failure.Close())
	return true
}

// podRequest is the address of a subresource of a pod.
func podRequest(t *testing.T, config *rest.Config, namespace, subresource string, options *corev1.PodExecOptions) *rest.Request {
	t.Helper()
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request := c.Post().Resource("pods").Namespace(namespace).Name("db").SubResource(subresource)
	if options != nil {
		request.VersionedParams(options, scheme.ParameterCodec)
	}
	return request
}

// tell runs the program of a pod with an input, and returns its output.
func tell(ctx context.Context, executor remotecommand.Executor, err error) (string, error) {
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
	return out.String(), err
}

// echo sends something to a port of a pod, and returns what comes back.
func echo(t *testing.T, config *rest.Config, namespace string) (string, error) {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return "", err
	}
	address := podRequest(t, config, namespace, "portforward", nil).URL()
	connection, _, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address).Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	headers := http.Header{}
	headers.Set(corev1.PortHeader, "5432")
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	if _, err := connection.CreateStream(headers); err != nil {
		return "", err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(data, "select 1"); err != nil {
		return "", err
	}
	if err := data.Close(); err != nil {
		return "", err
	}
	back, err := io.ReadAll(data)
	return string(back), err
}

// The libraries of kubectl execute in pods, and forward ports of theirs, by what a provider is given: through the API server of the cluster
// to where its node is, with the rights of the account, after its token was renewed too, and not once access was taken away.
func TestARESTConfigExecutesAndForwardsPorts(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	namespace := w.remoteNamespace()
	w.node(namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
		Spec:       corev1.PodSpec{NodeName: namespace, Containers: []corev1.Container{{Name: "db", Image: "db"}}},
	}
	if err := w.admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.admin.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	may := v1alpha1.Permission{Namespace: namespace, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods/exec", "pods/portforward"}, Verbs: []string{"get", "create"}},
	}}
	w.policy.Permissions = append(w.policy.Permissions, may)
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.MCP, c.Workload = clusteraccess.Permissions(may), nil
	})
	w.start()
	request := object("db")
	ar, before := w.asked(p, request)
	c := w.mcp(p, request)
	config := c.RESTConfig()
	options := &corev1.PodExecOptions{Container: "db", Command: []string{"shout"}, Stdin: true, Stdout: true}
	everything := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		address := podRequest(t, config, namespace, "exec", options).URL()
		overSPDY, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, address)
		if got, err := tell(ctx, overSPDY, err); err != nil || got != "HELLO" {
			return fmt.Errorf("exec by SPDY: %q, %w", got, err)
		}
		overSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, address.String())
		if got, err := tell(ctx, overSocket, err); err != nil || got != "HELLO" {
			return fmt.Errorf("exec by a WebSocket: %q, %w", got, err)
		}
		if got, err := echo(t, config, namespace); err != nil || got != "select 1" {
			return fmt.Errorf("port-forward: %q, %w", got, err)
		}
		return nil
	}
	operatortest.Eventually(t, "everything works", everything)

	_, old := w.credentials(ar)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ar.Status.ServiceAccount.Namespace, Name: ar.Status.ServiceAccount.Name}}
	if err := w.admin.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	w.renewed(ar, before)
	w.refused(old)
	operatortest.Eventually(t, "everything works after the renewal", everything)
	w.done("access is taken away", p.ReconcileDelete, request)
	operatortest.Eventually(t, "nothing works any more", func() error {
		if everything() == nil {
			return errors.New("it still does")
		}
		return nil
	})
}
