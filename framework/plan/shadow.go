package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// maxPlaces is the maximum number of places in a summary.
const maxPlaces = 50

// ShadowSummary summarizes the comparisons of a shadow resource set with the active ones over many
// objects.
type ShadowSummary struct {
	// Framework is the name of the framework.
	Framework string `json:"framework,omitempty"`
	// Shadow is the name of the shadow resource set.
	Shadow string `json:"shadow"`
	// Objects is the number of compared objects, including incomparable objects.
	Objects int `json:"objects"`
	// Differing is the number of objects for which the sets differ.
	Differing int `json:"differing"`
	// Failed is the number of objects for which one of the sets can't be planned.
	Failed int `json:"failed"`
	// Places are the places where the sets differ, those with the most objects first. There are at
	// most 50.
	Places []PlaceCount `json:"places,omitempty"`
	// OtherPlaces is the number of further places.
	OtherPlaces int `json:"otherPlaces,omitempty"`
	// Waiting is the number of objects that wait for a comparison. It is 0 after a comparison on
	// demand.
	Waiting int `json:"waiting,omitempty"`
}

// PlaceCount is a place where plans differ, and the number of objects.
type PlaceCount struct {
	Place
	Objects int `json:"objects"`
}

// String returns the summary as a sentence without a full stop, such as "v2 would change 3 of 214
// objects".
func (s ShadowSummary) String() string {
	text := fmt.Sprintf("%s would change %d of %s", s.Shadow, s.Differing, objectCount(s.Objects))
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d can't be compared", s.Failed)
	}
	return text
}

func objectCount(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// Summarize counts comparisons for each framework and shadow set, in the order of their first
// comparison.
func Summarize(comparisons []*Comparison) []ShadowSummary {
	type set struct{ framework, shadow string }
	var order []set
	bySet := map[set][]*Comparison{}
	for _, c := range comparisons {
		of := set{c.Framework, c.Shadow}
		if bySet[of] == nil {
			order = append(order, of)
		}
		bySet[of] = append(bySet[of], c)
	}
	summaries := make([]ShadowSummary, 0, len(order))
	for _, of := range order {
		summaries = append(summaries, summarize(bySet[of]))
	}
	return summaries
}

// summarize counts the comparisons with one set.
func summarize(comparisons []*Comparison) ShadowSummary {
	s := ShadowSummary{Framework: comparisons[0].Framework, Shadow: comparisons[0].Shadow, Objects: len(comparisons)}
	counts := map[Place]int{}
	for _, c := range comparisons {
		switch c.Verdict() {
		case Differs:
			s.Differing++
		case NotComparable:
			s.Failed++
		}
		for _, p := range c.Places() {
			counts[p]++
		}
	}
	s.Places, s.OtherPlaces = RankPlaces(counts)
	return s
}

// RankPlaces returns the 50 places with the most objects, in that order, and the number of other
// places. Places with equally many objects are sorted by resource, kind, path and action.
func RankPlaces(objects map[Place]int) (most []PlaceCount, others int) {
	for p, n := range objects {
		most = append(most, PlaceCount{p, n})
	}
	slices.SortFunc(most, func(a, b PlaceCount) int {
		return cmp.Or(
			cmp.Compare(b.Objects, a.Objects),
			cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Action, b.Action),
		)
	})
	others = max(len(most)-maxPlaces, 0)
	return slices.Clip(most[:len(most)-others]), others
}
