package natsresource_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

func TestR16AnEntryOfSomebodyElseIsRefusedByName(t *testing.T) {
	self := &identity.Scope{Identity: identity.Identity{Operator: "o", Framework: "f"}}
	const ours = `resource "routes" of framework "f" of operator "o"`
	for name, tc := range map[string]struct {
		existing  func(k *kit)
		reason    string
		adoptable bool
	}{
		"one that stands for itself": {
			func(k *kit) { k.create(newRoute("a", "theirs")) },
			"it exists already and has no owner", true,
		},
		"of another primary": {
			func(k *kit) {
				k.update(k.resource(just(newRoute("a", "theirs"))), &gateway{Meta: natsinformer.Meta{Name: "shop"}})
			},
			"it belongs to Gateway shop and was made by " + ours, false,
		},
		"of another kind": {
			func(k *kit) {
				k.update(k.resource(just(newRoute("a", "theirs")), func(c *config) { c.Kind = "Portal" }), home())
			},
			"it belongs to Portal home and was made by " + ours, false,
		},
		"of another resource": {
			func(k *kit) {
				k.update(k.resource(just(newRoute("a", "theirs")), func(c *config) { c.Name = "other" }), home())
			},
			`it belongs to Gateway home and was made by resource "other" of framework "f" of operator "o"`, false,
		},
		"of another framework": {
			func(k *kit) { k.by("o", "other").update(k.resource(just(newRoute("a", "theirs"))), home()) },
			`it belongs to Gateway home and was made by resource "routes" of framework "other" of operator "o"`, false,
		},
		"of another operator": {
			func(k *kit) { k.by("other", "f").update(k.resource(just(newRoute("a", "theirs"))), home()) },
			`it belongs to Gateway home and was made by resource "routes" of framework "f" of operator "other"`, false,
		},
		"of another operator, of no primary": {
			func(k *kit) {
				k.by("other", "f").update(k.resource(just(newRoute("a", "theirs"))), home())
				k.change("a", func(r *route) { r.OwnerKind, r.OwnerKey = "", "" })
			},
			`it belongs to no primary and was made by resource "routes" of framework "f" of operator "other"`, false,
		},
		"of another primary, by somebody who left no name": {
			func(k *kit) {
				r := newRoute("a", "theirs")
				r.OwnerKind, r.OwnerKey = "Gateway", "shop"
				k.create(r)
			},
			"it belongs to Gateway shop", false,
		},
		"with a mark of a form that is not known": {
			func(k *kit) {
				k.update(k.resource(just(newRoute("a", "theirs"))), home())
				k.change("a", func(r *route) { r.Annotations[natsresource.MadeByAnnotation] = "v2 somebody" })
			},
			`it belongs to Gateway home, and its operatorkit.io/made-by has a form that is not known here: "v2 somebody"`, false,
		},
		"of the same framework, without a resource": {
			func(k *kit) {
				r := newRoute("a", "theirs")
				r.OwnerKind, r.OwnerKey = "Gateway", "home"
				r.Annotations = map[string]string{natsresource.MadeByAnnotation: natsresource.MadeBy(self.Identity)}
				k.create(r)
			},
			`it was made for the same primary by framework "f" of operator "o" without a resource`, true,
		},
		"of the same primary, without a name": {
			func(k *kit) {
				r := newRoute("a", "theirs")
				r.OwnerKind, r.OwnerKey = "Gateway", "home"
				k.create(r)
			},
			"it was made for the same primary by somebody who left no name", true,
		},
		"a copy of one of ours": {
			func(k *kit) {
				k.update(k.resource(just(newRoute("original", "theirs"))), home())
				copied := k.get("original")
				copied.Name = "a"
				k.create(copied)
			},
			"it is a copy of original", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.as = self
			tc.existing(k)
			before := k.get("a")
			want := just(newRoute("a", "ours"), newRoute("original", "theirs"))

			err := k.tryUpdate(k.resource(want), home())
			var refused *natsresource.RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want a refusal", err)
			}
			wantError := &natsresource.RefusedError{
				Key: natsresource.Key{Bucket: "routes", Name: "a"}, Reason: tc.reason, Adoptable: tc.adoptable,
			}
			if diff := cmp.Diff(wantError, refused); diff != "" {
				t.Error(diff)
			}
			if framework.IsPermanent(err) {
				t.Error("a refusal ends when the other entry goes, so it must be tried again")
			}

			err = k.tryUpdate(k.resource(want, adopt), home())
			if adopted := err == nil; adopted != tc.adoptable {
				t.Errorf("with Adopt: %v", err)
			}
			after := k.get("a")
			switch {
			case !tc.adoptable && after.Revision() != before.Revision():
				t.Error("the entry was written")
			case tc.adoptable && (after.Host != "ours" || after.OwnerKey != "home" || after.UID != before.UID):
				t.Errorf("adopted: %+v", after)
			}
			if tc.adoptable {
				k.wantQuiet(k.resource(want), home())
			}
		})
	}
}

func TestAnAdoptedCopyKeepsItsLabels(t *testing.T) {
	k := newKit(t)
	original := newRoute("original", "x")
	original.Labels = map[string]string{"tier": "web"}
	k.update(k.resource(just(original)), home())
	copied := k.get("original")
	copied.Name = "copy"
	k.create(copied)
	k.update(k.resource(just(newRoute("copy", "x")), adopt), home())
	if diff := cmp.Diff(map[string]string{"tier": "web"}, k.get("copy").Labels); diff != "" {
		t.Error(diff)
	}
}

func TestWhatOnlyLooksLikeOursIsNotDeleted(t *testing.T) {
	k := newKit(t)
	r := k.resource(just(newRoute("original", "ours")))
	k.update(r, home())
	copied := k.get("original")
	copied.Name = "copy"
	k.create(copied)
	nameless := newRoute("nameless", "theirs")
	nameless.OwnerKind, nameless.OwnerKey = "Gateway", "home"
	k.create(nameless)
	k.wantQuiet(r, home())
	if err := framework.ProcessDelete(t.Context(), home(), []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	k.wantHosts("copy=ours", "nameless=theirs")
}

func TestAnEntryThatCannotBeDecodedIsNeverOverwritten(t *testing.T) {
	for name, tc := range map[string]struct {
		options []func(*config)
		shown   bool
	}{
		"plain":     {nil, true},
		"adopting":  {[]func(*config){adopt}, true},
		"sensitive": {[]func(*config){sensitive}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			r := k.resource(just(newRoute("a", "ours")), tc.options...)
			broken := []byte(`{"host":7}`)
			if _, err := k.kv.Put(t.Context(), "a", broken); err != nil {
				t.Fatal(err)
			}
			wantRefused := func(err error) {
				t.Helper()
				if !errors.Is(err, natsinformer.ErrUndecodable) || !strings.Contains(err.Error(), "refusing to overwrite entry a of bucket routes") {
					t.Fatalf("got %v, want ErrUndecodable", err)
				}
				if strings.Contains(err.Error(), "json") != tc.shown {
					t.Errorf("the decoder's words in %v, want %v", err, tc.shown)
				}
			}
			// Whether the source knows of it already or not, and afterwards.
			wantRefused(framework.ProcessUpdate(t.Context(), home(), []framework.Resource{r}))
			wantRefused(k.tryUpdate(r, home()))
			entry, err := k.kv.Get(t.Context(), "a")
			if err != nil || string(entry.Value()) != string(broken) {
				t.Errorf("entry %v, %v", entry, err)
			}

			if err := k.kv.Purge(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			k.update(r, home())
			k.wantHosts("a=ours")
		})
	}
}

func TestARefusedEntryStopsNoOther(t *testing.T) {
	k := newKit(t)
	k.update(k.resource(just(newRoute("changed", "a"), newRoute("old", "a"))), home())
	k.create(newRoute("refused", "theirs"))
	k.create(newRoute("refused-too", "theirs"))
	r := k.resource(just(newRoute("refused", "a"), newRoute("refused-too", "a"), &route{}, newRoute("new", "a"), newRoute("not a key!", "a"), newRoute("changed", "b")))

	k.catchUp()
	planned, err := framework.PlanUpdate(k.context(), home(), []framework.Resource{r})
	if err != nil {
		t.Fatal(err)
	}
	if got := planned.Counts().String(); got != "2 to create, 1 to update, 0 to delete" {
		t.Errorf("the plan: %s", got)
	}
	err = k.tryUpdate(r, home())
	if err == nil || framework.IsPermanent(err) {
		t.Errorf("got %v, want an error that may pass", err)
	}
	for _, told := range []string{"entry refused of", "entry refused-too of", "desired entry 2: has no name", "keys are letters"} {
		if err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%q is not told by %v", told, err)
		}
	}
	for name, host := range map[string]string{"new": "a", "changed": "b", "old": "a"} {
		if entry, err := k.bucket.Get(t.Context(), name); err != nil || entry.Host != host {
			t.Errorf("%s: got %+v, %v; want the host %q", name, entry, err, host)
		}
	}
}
