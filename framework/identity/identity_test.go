package identity_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/framework/identity"
)

func TestNamesThatFitStandInMarksAsTheyAre(t *testing.T) {
	i := identity.Identity{Operator: "website-operator", Framework: "websites.example.com"}
	got := []string{i.Finalizer(), i.Component(), identity.Mark{Operator: "a", Framework: "b", Resource: "c"}.FieldManager(), identity.LabelValue("a.b-C1"), i.String(), identity.LeaseName("a.b-1")}
	want := []string{"operatorkit.io/v1_website-operator_websites.example.com", "website-operator/websites.example.com", "operatorkit-v1_a_b_c",
		"v1_a.b-C1", `framework "websites.example.com" of operator "website-operator"`, "a.b-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// names are such as operators and frameworks have: short ones, long ones, paths, and ones that look like a join of others.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "a_b", "b", "b_c", "a-b", "a.b", "*v1.Website", "github.com/example/operators/cmd/websites", "-", "é"}),
		rapid.StringMatching(`[a-z0-9._/*-]{1,80}`),
	)
}

func TestR16MarksOfDifferentIdentitiesDifferAndFitWhereTheyGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() identity.Mark {
			return identity.Mark{Operator: names().Draw(t, "operator"), Framework: names().Draw(t, "framework"), Resource: names().Draw(t, "resource")}
		}
		marks := func(m identity.Mark) []string {
			i := identity.Identity{Operator: m.Operator, Framework: m.Framework}
			return []string{i.Finalizer(), m.FieldManager(), m.Hash("x"), identity.LabelValue(m.Operator), identity.LeaseName(m.Operator), i.Component()}
		}
		a, b := draw(), draw()
		first, second := marks(a), marks(b)
		sameOperator := a.Operator == b.Operator
		sameFramework := sameOperator && a.Framework == b.Framework
		same := []bool{sameFramework, a == b, a == b, sameOperator, sameOperator, sameFramework}
		for n := range first {
			if (first[n] == second[n]) != same[n] {
				t.Errorf("%+v has %q, %+v has %q", a, first[n], b, second[n])
			}
		}
		for what, name := range map[string]string{"finalizer": first[0], "component": first[5]} {
			if msgs := validation.IsQualifiedName(name); len(msgs) > 0 {
				t.Errorf("the %s %q: %v", what, name, msgs)
			}
		}
		if msgs := validation.IsDNS1123Subdomain(first[4]); len(msgs) > 0 {
			t.Errorf("the name of the lease %q: %v", first[4], msgs)
		}
		if len(first[1]) > 128 {
			t.Errorf("the field manager %q has %d bytes", first[1], len(first[1]))
		}
		for _, value := range []string{first[2], first[3]} {
			if msgs := validation.IsValidLabelValue(value); len(msgs) > 0 {
				t.Errorf("the label value %q: %v", value, msgs)
			}
		}
		if !strings.HasPrefix(first[0], "operatorkit.io/"+identity.Form+"_") || !strings.HasPrefix(first[2], identity.Form+"-") {
			t.Errorf("%q and %q don't say which form they have", first[0], first[2])
		}
	})
}

func TestHashTellsItsPartsApart(t *testing.T) {
	m := identity.Mark{Operator: "o", Framework: "f", Resource: "r"}
	hashes := []string{m.Hash(), m.Hash("a"), m.Hash("a", "b"), m.Hash("b", "a"), m.Hash("ab"), m.Hash("a", "b", "")}
	if slices.Sort(hashes); len(slices.Compact(hashes)) != 6 {
		t.Errorf("two of these are the same: %v", hashes)
	}
}

func TestFormerNamesAreAllPairsButThePresentOne(t *testing.T) {
	scope := identity.Scope{Identity: identity.Identity{Operator: "o2", Framework: "f2", FormerOperators: []string{"o1"}, FormerFrameworks: []string{"f1"}}}
	want := []identity.Mark{
		{"o2", "f2", "r1"}, {"o2", "f1", "r2"}, {"o2", "f1", "r1"}, {"o1", "f2", "r2"}, {"o1", "f2", "r1"}, {"o1", "f1", "r2"}, {"o1", "f1", "r1"},
	}
	if diff := cmp.Diff(want, scope.Former("r2", []string{"r1"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(append([]identity.Mark{{"o2", "f2", "r2"}}, want...), scope.Marks("r2", []string{"r1"})); diff != "" {
		t.Error(diff)
	}
	finalizers := []string{"operatorkit.io/v1_o2_f1", "operatorkit.io/v1_o1_f2", "operatorkit.io/v1_o1_f1"}
	if diff := cmp.Diff(finalizers, scope.FormerFinalizers()); diff != "" {
		t.Error(diff)
	}
}

func TestContextTellsTheScopeAndWhatWasTakenOver(t *testing.T) {
	outside := identity.From(context.Background())
	if outside.Operator != identity.Program() || outside.Framework != identity.DefaultFramework || outside.Operator == "" {
		t.Errorf("outside of a framework: %+v", outside.Identity)
	}
	identity.Take(context.Background(), "x")
	if identity.Taken(context.Background(), "x") {
		t.Error("something was taken over without a framework")
	}
	scope := &identity.Scope{Identity: identity.Identity{Operator: "o", Framework: "f"}, Left: []string{"r1"}}
	ctx, other := identity.NewContext(t.Context(), scope), identity.NewContext(t.Context(), scope)
	if identity.From(ctx) != scope {
		t.Errorf("got %+v", identity.From(ctx))
	}
	identity.Take(ctx, "x")
	got := []bool{identity.Taken(ctx, "x"), identity.Taken(ctx, "y"), identity.Taken(other, "x"), scope.Leaves(scope.Mark("r1")), scope.Leaves(scope.Mark("r2"))}
	if diff := cmp.Diff([]bool{true, false, false, true, false}, got); diff != "" {
		t.Error(diff)
	}
}
