package natsinformer_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// Site is an entity of an earlier version of an operator. Fields called later are those of the next
// version.
type Site struct {
	natsinformer.Meta `json:"metadata"`
	Spec              SiteSpec `json:"spec,omitzero"`
}

type SiteSpec struct {
	Owner  *SiteOwner           `json:"owner,omitempty"`
	Routes []SiteRoute          `json:"routes,omitempty"`
	Ports  []SitePort           `json:"ports,omitempty"`
	Limits map[string]SiteOwner `json:"limits,omitempty"`
	Since  metav1.Time          `json:"since,omitzero"`
}

type (
	SiteOwner struct {
		Mail string `json:"mail,omitempty"`
	}
	SiteRoute struct {
		Name string `json:"name"`
		Host string `json:"host,omitempty"`
	}
	SitePort struct {
		Number int `json:"number"`
	}
)

func TestFieldsThatTheTypeDoesNotHaveStayInTheEntry(t *testing.T) {
	const value = `{"metadata":{"uid":"u","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","later":"a"},"later":12345678901234567890,
		"spec":{"later":{"x":[1,null]},"since":"2026-01-01T00:00:00Z","owner":{"later":true},"limits":{"cpu":{"mail":"m","later":1}},
			"routes":[{"name":"a","host":"x","later":1},{"name":"b","host":"y","later":2}],"ports":[{"number":1,"later":"p"},{"number":2,"later":"q"}]}}`
	_, js := natsserver.Start(t).Connect(t)
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "sites"})
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Site]{JetStream: js, Name: "sites"})
	if err != nil {
		t.Fatal(err)
	}
	object := func(m map[string]any, path ...string) map[string]any {
		for _, name := range path {
			m = m[name].(map[string]any)
		}
		return m
	}
	for name, test := range map[string]struct {
		change func(*Site)
		want   func(all map[string]any)
	}{
		"nothing": {change: func(*Site) {}, want: func(map[string]any) {}},
		"a finalizer": {
			change: func(s *Site) { s.Finalizers = append(s.Finalizers, "f") },
			want:   func(all map[string]any) { object(all, "metadata")["finalizers"] = []any{"f"} },
		},
		"a condition": {
			change: func(s *Site) {
				meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: "Ready", Status: "True", LastTransitionTime: s.CreationTimestamp})
			},
			want: func(all map[string]any) {
				object(all, "metadata")["conditions"] = []any{map[string]any{"type": "Ready", "status": "True", "reason": "", "message": "",
					"lastTransitionTime": "2026-01-01T00:00:00Z"}}
			},
		},
		"a route is changed and the other one is removed": {
			change: func(s *Site) { s.Spec.Routes = []SiteRoute{{Name: "b", Host: "z"}} },
			want: func(all map[string]any) {
				object(all, "spec")["routes"] = []any{map[string]any{"name": "b", "host": "z", "later": json.Number("2")}}
			},
		},
		"a route is new and comes first": {
			change: func(s *Site) { s.Spec.Routes = append([]SiteRoute{{Name: "c"}}, s.Spec.Routes...) },
			want: func(all map[string]any) {
				spec := object(all, "spec")
				spec["routes"] = append([]any{map[string]any{"name": "c"}}, spec["routes"].([]any)...)
			},
		},
		"a port without a name is changed": {
			change: func(s *Site) { s.Spec.Ports[1].Number = 3 },
			want: func(all map[string]any) {
				object(all, "spec")["ports"].([]any)[1].(map[string]any)["number"] = json.Number("3")
			},
		},
		"a port without a name is removed": {
			change: func(s *Site) { s.Spec.Ports = s.Spec.Ports[1:] },
			want: func(all map[string]any) {
				spec := object(all, "spec")
				spec["ports"] = spec["ports"].([]any)[1:]
			},
		},
		"an object is removed": {
			change: func(s *Site) { s.Spec.Owner = nil; delete(s.Spec.Limits, "cpu") },
			want:   func(all map[string]any) { delete(object(all, "spec"), "owner"); delete(object(all, "spec"), "limits") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := kv.PutString(t.Context(), "x", value); err != nil {
				t.Fatal(err)
			}
			site, err := bucket.Get(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			test.change(site)
			for range 2 { // The second one writes what the first one has written.
				if err := bucket.Update(t.Context(), site); err != nil {
					t.Fatal(err)
				}
			}
			want := decoded(t, []byte(value))
			want["metadata"].(map[string]any)["name"] = "x"
			test.want(want)
			entry, err := kv.Get(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, decoded(t, entry.Value())); diff != "" {
				t.Errorf("the entry (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARequestedDeletionKeepsFieldsThatTheTypeDoesNotHave(t *testing.T) {
	b := newBed(t, jetstream.KeyValueConfig{})
	b.put("x", `{"hosts":["a"],"later":{"spec":1}}`)
	b.run()
	b.sync()
	held, _, err := b.source.Lookup("x")
	b.must(err)
	held.Finalizers = []string{"f"}
	b.must(b.bucket.Update(t.Context(), held))
	b.must(b.bucket.RequestDeletion(t.Context(), "x"))
	entry, err := b.kv.Get(t.Context(), "x")
	b.must(err)
	got := decoded(t, entry.Value())
	if diff := cmp.Diff(map[string]any{"spec": json.Number("1")}, got["later"]); diff != "" {
		t.Errorf("the entry is %s (-want +got):\n%s", entry.Value(), diff)
	}
	if got["metadata"].(map[string]any)["deletionTimestamp"] == nil {
		t.Errorf("no deletion was requested: %s", entry.Value())
	}
}

func decoded(t *testing.T, data []byte) (all map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}
