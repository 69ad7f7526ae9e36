package manifest

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"
)

// errCopies refuses what would let a few lines grow without a bound.
var errCopies = errors.New("a patch has the operation copy, with which it could grow without a bound: add what it copies instead")

// unbounded returns an error for a text that is a JSON patch with an operation that copies, or has aliases that make it large.
func unbounded(patch string) error {
	values, err := parse([]byte(patch), &budget{limits: Limits{Nodes: 1 << 20, Bytes: 16 << 20}})
	if errors.Is(err, errAliases) {
		return fmt.Errorf("a patch: %w", err)
	}
	if err != nil {
		return nil //nolint:nilerr // It is kustomize's to say what is wrong with it.
	}
	for _, value := range values {
		operations, _ := value.([]any)
		for _, operation := range operations {
			if textOf(operation, "op") == "copy" {
				return errCopies
			}
		}
	}
	return nil
}

// most is how many fields the replacements of a kustomization may set.
const most = 1000

// replacementsIn takes along a file with replacements, and returns them.
func (g *gathering) replacementsIn(name, folder string) ([]types.Replacement, error) {
	data, err := g.file(name, folder, true)
	if err != nil {
		return nil, err
	}
	g.instructions += len(data)
	var several []types.Replacement
	if sigsyaml.Unmarshal(data, &several) == nil {
		return several, nil
	}
	var one types.Replacement
	if err := sigsyaml.Unmarshal(data, &one); err != nil {
		return nil, fmt.Errorf("%s is no replacement: %w", path.Join(folder, name), err)
	}
	return []types.Replacement{one}, nil
}

// growing refuses replacements that take from where replacements put something: each of them could double it.
func growing(replacements []types.Replacement) error {
	type place struct{ kind, name, path string }
	var targets []place
	renames := false
	for _, r := range replacements {
		for _, target := range r.Targets {
			if target == nil || target.Select == nil {
				continue
			}
			paths := target.FieldPaths
			if len(paths) == 0 {
				paths = []string{types.DefaultReplacementFieldPath}
			}
			for _, p := range paths {
				renames = renames || related(p, types.DefaultReplacementFieldPath) || related(p, "kind")
				targets = append(targets, place{kind: target.Select.Kind, name: target.Select.Name, path: p})
			}
		}
	}
	if len(targets) > most {
		return fmt.Errorf("its replacements set more than %d fields: split the service", most)
	}
	for _, r := range replacements {
		if r.Source == nil {
			continue
		}
		from := r.Source.FieldPath
		if from == "" || from == types.DefaultReplacementFieldPath {
			continue // A name is short.
		}
		for _, to := range targets {
			if related(from, to.path) && (renames || mayBe(to.kind, r.Source.Kind) && mayBeNamed(to.name, r.Source.Name)) {
				return fmt.Errorf("a replacement takes %s of %s %s, where another one, or itself, puts something at %s, and could grow "+
					"without a bound: take it from where it comes from", from, r.Source.Kind, r.Source.Name, to.path)
			}
		}
	}
	return nil
}

// related tells whether one path may lead to a part of the other.
func related(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	n := min(len(as), len(bs))
	return slices.EqualFunc(as[:n], bs[:n], func(x, y string) bool { return x == y || !plain(x) || !plain(y) })
}

// word is a part of a path that is no number and has nothing of a pattern.
var word = regexp.MustCompile(`^[0-9]*[A-Za-z_-][A-Za-z0-9_-]*$`)

// plain tells whether a part of a path, or a kind or name to select, stands for itself only.
func plain(text string) bool { return word.MatchString(text) }

// mayBe tells whether what a target selects may be what a source names. A target selects by a regular expression.
func mayBe(selected, named string) bool {
	return selected == "" || named == "" || !plain(selected) || selected == named
}

// mayBeNamed is mayBe for names, to which a kustomization may add something in front and behind.
func mayBeNamed(selected, named string) bool {
	return mayBe(selected, named) || strings.Contains(selected, named) || strings.Contains(named, selected)
}
