package fetch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Names that others chose are shown up to this number, and only if they are this short.
const (
	shownNames   = 5
	longestShown = 64
)

// withoutVersion is the error of a version that does not exist.
func withoutVersion(wanted string, offered []string) error {
	versions := near(wanted, offered)
	if len(versions) == 0 {
		return passing(ErrNotFound, "publish it, or mend the name of the chart", "there is no version of it")
	}
	return passing(ErrNotFound, "publish it, or take another version", "the versions nearest to it are %s", strings.Join(versions, ", "))
}

// near returns the versions around the one that is wanted, in order.
func near(wanted string, offered []string) []string {
	var versions []*semver.Version
	for _, text := range offered {
		if v, err := semver.NewVersion(text); err == nil && len(text) <= longestShown {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, (*semver.Version).Compare)
	versions = slices.CompactFunc(versions, (*semver.Version).Equal)
	at := len(versions)
	if v, err := semver.NewVersion(wanted); err == nil {
		at, _ = slices.BinarySearchFunc(versions, v, (*semver.Version).Compare)
	}
	from := max(0, min(at-shownNames/2-1, len(versions)-shownNames))
	var texts []string
	for _, v := range versions[from:min(from+shownNames, len(versions))] {
		texts = append(texts, v.Original())
	}
	return texts
}

// withoutChart is the error of a chart that an index does not have.
func (i index) withoutChart(wanted string) error {
	var names []string
	for name := range i.Entries {
		if name != "" && len(name) <= longestShown && !strings.ContainsFunc(name, unusual) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return passing(ErrNotFound, "publish it, or mend the address in the template", "the repository has no charts")
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(alike(b, wanted), alike(a, wanted)), cmp.Compare(a, b))
	})
	shown := names[:min(shownNames, len(names))]
	return passing(ErrNotFound, "publish it, or mend the name of the chart",
		"%s, and not this one", counted(len(names), shown))
}

func counted(all int, shown []string) string {
	if all > len(shown) {
		return fmt.Sprintf("the repository has %d charts, among them %s", all, strings.Join(shown, ", "))
	}
	return "the repository has the charts " + strings.Join(shown, ", ")
}

// alike is how many characters two names begin with in common; a name within the other counts as much.
func alike(name, wanted string) int {
	n := 0
	for n < len(name) && n < len(wanted) && name[n] == wanted[n] {
		n++
	}
	if strings.Contains(name, wanted) {
		n = max(n, len(wanted))
	}
	if strings.Contains(wanted, name) {
		n = max(n, len(name))
	}
	return n
}

// unusual tells whether a character is not one of those that charts are named with.
func unusual(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_./", r):
		return false
	}
	return true
}
