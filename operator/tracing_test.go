package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// The writer makes a child, which the reader reconciles: its span leads to that of the writer.
func TestWritesOfAReconciliationAreSpansAndLinkWhatTheyCause(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "writer", RESTConfig: instance.RESTConfig(), Scheme: clientgoscheme.Scheme, Logger: quiet(t), Namespaces: []string{namespace}, TracerProvider: provider,
	})
	must(t, err)
	t.Cleanup(d.Close)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(elsewhere.Close)
	ask := func(ctx context.Context, method, url string) error {
		request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := d.HTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	unreachable := httptest.NewServer(http.NotFoundHandler())
	unreachable.Close()

	written := make(chan struct{})
	writer, err := d.NewFramework(framework.Config{Name: "writer", Source: sourceOf(t, d, "primary"), Resources: []framework.Resource{&resource{func(ctx context.Context, _ any) error {
		child := labelled(namespace, "child", "child")
		err := d.Client.Create(ctx, child)
		close(written)
		if err != nil {
			return err
		}
		if err := d.Client.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			return err
		}
		if err := d.Client.Update(ctx, child, client.DryRunAll); err != nil {
			return err
		}
		child.ResourceVersion = "1"
		if err := d.Client.Update(ctx, child); !apierrors.IsConflict(err) {
			return fmt.Errorf("an update of an old version: %w", err)
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if err := ask(ctx, method, elsewhere.URL+"/api/v1/keys/secret"); err != nil {
				return err
			}
		}
		_ = ask(ctx, http.MethodPost, unreachable.URL)
		return d.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
	}}}})
	must(t, err)
	reader, err := d.NewFramework(framework.Config{
		Name: "reader", Source: sourceOf(t, d, "child"), DisableFinalizer: true, Resources: []framework.Resource{&resource{func(context.Context, any) error {
			<-written // Its event may arrive earlier than the answer that identifies its author.
			return nil
		}}},
	})
	must(t, err)
	o := run(t, newOperator(t, operator.Config{Name: "writer", Frameworks: []*framework.Framework{writer, reader}, Registry: d.Registry}))
	operatortest.Eventually(t, "the sources are synced", func() bool { return reader.Sources()[0].Status().Synced })
	primary := labelled(namespace, "primary", "primary")
	must(t, user.Create(t.Context(), primary))
	spansOf := func(name string) (found tracetest.SpanStubs) {
		for _, s := range exporter.GetSpans() {
			if s.Name == name {
				found = append(found, s)
			}
		}
		return found
	}
	operatortest.Eventually(t, "the child is reconciled", func() bool { return len(spansOf("update writer")) > 0 && len(spansOf("update reader")) > 0 })
	must(t, user.Delete(t.Context(), primary))
	operatortest.Eventually(t, "the deletion is reconciled", func() bool { return len(spansOf("delete writer")) > 0 })
	must(t, o.stop())

	requests := func(name string) (lines []string) {
		spans := exporter.GetSpans()
		slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
		of := spansOf(name)[0].SpanContext
		for _, s := range spans {
			if s.SpanContext.TraceID() != of.TraceID() || s.InstrumentationScope.Name != "github.com/operatorkit/operatorkit/operator" {
				continue
			}
			around := slices.IndexFunc(spans, func(other tracetest.SpanStub) bool { return other.SpanContext.SpanID() == s.Parent.SpanID() })
			line := spans[around].Name + ": " + s.Name
			for _, a := range s.Attributes {
				if value := a.Value.String(); value != "" && a.Key != "server.address" && a.Key != "http.request.method" {
					line += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(a.Key), "operatorkit.write."), value)
				}
			}
			if s.Status.Description != "" {
				line += " " + s.Status.Code.String() + ": " + s.Status.Description
			}
			lines = append(lines, strings.ReplaceAll(line, namespace, "NAMESPACE"))
		}
		return lines
	}
	of := " resource=configmaps namespace=NAMESPACE name="
	updates := requests("update writer")
	if n := len(updates); n == 0 || !strings.Contains(updates[n-1], "connect: connection refused") {
		t.Fatalf("the last request of %q is not the one that reaches nobody", updates)
	}
	updates[len(updates)-1] = "refused"
	if diff := cmp.Diff([]string{
		"update writer: PATCH configmaps" + of + "primary http.response.status_code=200",
		"resource ensure_created: POST configmaps resource=configmaps namespace=NAMESPACE http.response.status_code=201",
		"resource ensure_created: PUT configmaps" + of + "child http.response.status_code=409 Error: Conflict",
		"resource ensure_created: POST http.response.status_code=418 Error: I'm a teapot",
		"refused",
	}, updates); diff != "" {
		t.Errorf("requests of the update (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"delete writer: PATCH configmaps" + of + "primary http.response.status_code=200"}, requests("delete writer")); diff != "" {
		t.Errorf("requests of the deletion (-want +got):\n%s", diff)
	}
	caused := spansOf("update reader")[0]
	if len(caused.Links) != 1 || caused.Links[0].SpanContext.SpanID() != spansOf("update writer")[0].SpanContext.SpanID() {
		t.Errorf("the span of the reader has the links %v, want one to that of the writer", caused.Links)
	}
	if parent := caused.Parent; parent.IsValid() {
		t.Errorf("the span of the reader is a part of %v", parent)
	}
}
