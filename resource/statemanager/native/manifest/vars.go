package manifest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"
)

// expansion bounds what vars can make of objects: kustomize goes through the fields in which they count once, and puts the value of a var,
// which is at most the longest text that there is, in the place of each $(NAME). It goes through fields of a kustomization's own
// varReference once more, where values with references of their own grow a second time.
type expansion struct {
	used bool
	// references is how many there are in objects, instructions how many there are in what may be put into each object, and most how many
	// a single text has. Longest is the largest file in bytes.
	references, instructions, most, longest int
	// fields are those that the kustomization has in addition.
	fields []types.FieldSpec
}

// seen counts the references in a value.
func (e *expansion) seen(value any) int {
	n := 0
	switch value := value.(type) {
	case string:
		n = strings.Count(value, "$(")
		if strings.Contains(value, `\`) { // It may be YAML within YAML, with \x24, \u0024 or \U00000024 for the dollar.
			n = strings.Count(value, "$") + strings.Count(value, "24")
		}
		e.most = max(e.most, n)
	case []any:
		for _, each := range value {
			n += e.seen(each)
		}
	case map[string]any:
		for _, each := range value {
			n += e.seen(each)
		}
	}
	return n
}

// expanding refuses vars that could make too much of the objects. Each target of a replacement may lengthen a text once.
func (g *gathering) expanding() error {
	if !g.vars.used {
		return nil
	}
	lengthened := 1
	for _, r := range g.replacements {
		lengthened += len(r.Targets)
	}
	references := float64(g.vars.references) + float64(g.vars.instructions)*float64(max(1, g.objects))
	if len(g.vars.fields) > 0 {
		references *= float64(max(1, g.vars.most) * lengthened)
	}
	if longest := (g.vars.longest + g.instructions) * lengthened; references*float64(longest) > largestProduct {
		return fmt.Errorf("its vars have %.0f places for values of up to %d bytes, and could grow without a bound: use replacements, or split "+
			"the service", references, longest)
	}
	return nil
}

// plainField is a path of a field without anything that could be written in two ways.
var plainField = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`)

// varReferencesIn takes along a file with configurations, and refuses fields for vars of which one may be a part of another: kustomize would go
// through them again and again.
func (g *gathering) varReferencesIn(name, folder string) error {
	data, err := g.file(name, folder, true)
	if err != nil {
		return err
	}
	g.instructions += len(data)
	var configuration struct {
		VarReference []types.FieldSpec `json:"varReference"`
	}
	if err := sigsyaml.Unmarshal(data, &configuration); err != nil {
		return fmt.Errorf("%s is no configuration of kustomize: %w", path.Join(folder, name), err)
	}
	for _, field := range configuration.VarReference {
		field.Path = strings.ReplaceAll(field.Path, "[]", "")
		if !plainField.MatchString(field.Path) {
			return fmt.Errorf("%s has the varReference %q, which is no path like spec/template/metadata", path.Join(folder, name), field.Path)
		}
		if slices.Contains(g.vars.fields, field) {
			continue // kustomize takes it once.
		}
		if i := slices.IndexFunc(g.vars.fields, func(other types.FieldSpec) bool { return overlaps(field, other) }); i >= 0 {
			return fmt.Errorf("%s has the varReferences %s and %s, of which one may be a part of the other: keep one of them",
				path.Join(folder, name), g.vars.fields[i].Path, field.Path)
		}
		g.vars.fields = append(g.vars.fields, field)
	}
	return nil
}

// overlaps tells whether two fields may have a text in common.
func overlaps(a, b types.FieldSpec) bool {
	may := func(x, y string) bool { return x == "" || y == "" || x == y }
	return may(a.Kind, b.Kind) && may(a.Group, b.Group) && may(a.Version, b.Version) &&
		(a.Path == b.Path || strings.HasPrefix(a.Path, b.Path+"/") || strings.HasPrefix(b.Path, a.Path+"/"))
}
