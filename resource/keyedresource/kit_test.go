package keyedresource_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/keyedresource"
)

func TestMain(m *testing.M) {
	plantest.Checks(200)
	operatortest.VerifyTestMain(m)
}

// record is a thing of the external system.
type record struct {
	Host    string `json:"host"`
	Address string `json:"address"`
	Token   string `json:"token,omitempty"`
	Rank    int    `json:"rank,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Version int    `json:"version,omitempty"`
}

// zone is the external system. It is safe for concurrent use.
type zone struct {
	mu      sync.Mutex
	records map[string]record
	version int
	writes  []plantest.Write
	// refuse has the errors of puts, by host.
	refuse map[string]error
}

func newZone(records ...record) *zone {
	z := &zone{records: map[string]record{}, refuse: map[string]error{}}
	for _, r := range records {
		if err := z.put(r); err != nil {
			panic(err)
		}
	}
	return z
}

func (z *zone) list() []record {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.SortedFunc(maps.Values(z.records), func(a, b record) int { return cmp.Compare(a.Host, b.Host) })
}

func (z *zone) get(host string) (record, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	r, ok := z.records[host]
	return r, ok
}

func (z *zone) put(r record) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.writes = append(z.writes, plantest.Write{Object: plan.Object{Kind: "record", Name: r.Host}})
	if err := z.refuse[r.Host]; err != nil {
		return err
	}
	z.version++
	r.Version = z.version
	z.records[r.Host] = r
	return nil
}

func (z *zone) delete(host string) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.writes = append(z.writes, plantest.Write{Object: plan.Object{Kind: "record", Name: host}, Delete: true})
	if err := z.refuse[host]; err != nil {
		return err
	}
	delete(z.records, host)
	return nil
}

// hosts are the hosts and addresses of all records, such as "a=1 b=2".
func (z *zone) hosts() string {
	var all []string
	for _, r := range z.list() {
		all = append(all, r.Host+"="+r.Address)
	}
	return strings.Join(all, " ")
}

// written are the writes so far, such as "put a, delete b", which are forgotten then.
func (z *zone) written() string {
	z.mu.Lock()
	defer z.mu.Unlock()
	var all []string
	for _, w := range z.writes {
		verb := "put "
		if w.Delete {
			verb = "delete "
		}
		all = append(all, verb+w.Object.Name)
	}
	z.writes = nil
	return strings.Join(all, ", ")
}

// ServeHTTP has GET, PUT and DELETE for one record.
func (z *zone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := strings.TrimPrefix(r.URL.Path, "/")
	switch r.Method {
	case http.MethodPut:
		var put record
		if err := json.NewDecoder(r.Body).Decode(&put); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = z.put(put)
	case http.MethodDelete:
		_ = z.delete(host)
	default:
		found, ok := z.get(host)
		if !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(found)
	}
}

// remote is a client of a zone.
type remote struct {
	url  string
	http *http.Client
}

func (c remote) call(ctx context.Context, method, host string, body, answer any) (found bool, err error) {
	content, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/"+host, bytes.NewReader(content))
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotFound && method != http.MethodPut:
		return false, nil
	case response.StatusCode != http.StatusOK:
		return false, errors.New(response.Status)
	case answer == nil:
		return true, nil
	}
	return true, json.NewDecoder(response.Body).Decode(answer)
}

// The types of the resources under test: their primaries are config maps, whose data are the hosts and addresses of records.
type (
	primary  = *corev1.ConfigMap
	config   = keyedresource.Config[primary, record]
	resource = framework.TypedCRUDResource[primary, keyedresource.State[record]]
)

func newPrimary(name string, data ...string) primary {
	p := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{}}
	for i := 0; i+1 < len(data); i += 2 {
		p.Data[data[i]] = data[i+1]
	}
	return p
}

// wanted are the records that a primary wants.
func wanted(ctx context.Context, p primary) (records []record, err error) {
	for _, host := range slices.Sorted(maps.Keys(p.Data)) {
		records = append(records, record{Host: host, Address: p.Data[host], Owner: keyedresource.Mark(ctx)})
	}
	return records, nil
}

// newResource makes a resource of a zone that holds marks.
func newResource(t testing.TB, z *zone, log *bytes.Buffer, changes ...func(*config)) *resource {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: log})
	if err != nil {
		t.Fatal(err)
	}
	c := config{
		Name: "records", Logger: logger,
		Current: func(context.Context, primary) ([]record, error) { return z.list(), nil },
		Desired: wanted,
		Key:     func(r record) string { return r.Host },
		Mark:    func(r record) string { return r.Owner },
		Put:     func(_ context.Context, _ primary, r record) error { return z.put(r) },
		Delete:  func(_ context.Context, _ primary, r record) error { return z.delete(r.Host) },
		Keep: func(current, desired record) record {
			desired.Version = current.Version
			return desired
		},
	}
	for _, change := range changes {
		change(&c)
	}
	r, err := keyedresource.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// as returns a context of a framework.
func as(t testing.TB, operator, name string) context.Context {
	return identity.NewContext(t.Context(), &identity.Scope{Identity: identity.Identity{Operator: operator, Framework: name}})
}

func update(ctx context.Context, p primary, resources ...*resource) error {
	return framework.ProcessUpdate(ctx, p, plain(resources))
}

func plain(resources []*resource) (all []framework.Resource) {
	for _, r := range resources {
		all = append(all, r)
	}
	return all
}

// planned are the changes of an update, a line for each and for each of their fields.
func planned(t testing.TB, ctx context.Context, p primary, resources ...*resource) []string {
	t.Helper()
	would, err := framework.PlanUpdate(ctx, p, plain(resources))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range would.Resources {
		for _, c := range r.Changes {
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Action, c.Object, c.Description), ": "))
			for _, f := range c.Fields {
				lines = append(lines, "  "+f.String())
			}
		}
		if r.Error != "" {
			lines = append(lines, "error: "+r.Error)
		}
	}
	return lines
}
