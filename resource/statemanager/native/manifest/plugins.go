package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// builtin are the transformers and generators of kustomize that only change objects, or make them of files.
var builtin = []string{
	"AnnotationsTransformer", "ConfigMapGenerator", "HashTransformer", "ImageTagTransformer", "LabelTransformer", "NamespaceTransformer",
	"PatchJson6902Transformer", "PatchStrategicMergeTransformer", "PatchTransformer", "PrefixTransformer", "ReplacementTransformer",
	"ReplicaCountTransformer", "SecretGenerator", "SortOrderTransformer", "SuffixTransformer", "ValueAddTransformer",
}

// plugin is what the configurations of plugins have that leads to files or lets objects grow.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Path                string                      `json:"path"`
	Patch               string                      `json:"patch"`
	JSONOp              string                      `json:"jsonOp"`
	Paths               []types.PatchStrategicMerge `json:"paths"`
	Replacements        []types.ReplacementField    `json:"replacements"`
	types.KvPairSources `json:",inline"`
}

// plugins takes along what generators and transformers with configurations of their own need, by the fields of a kustomization that do the
// same. Entries are files, or configurations themselves.
func (g *gathering) plugins(entries []string, folder string, within []string) error {
	for _, entry := range entries {
		name, text := "a plugin", []byte(entry)
		inline, err := parse(text, g.budget)
		if err != nil || !slices.ContainsFunc(inline, isMap) {
			name = entry
			if text, err = g.file(entry, folder, true); err != nil {
				return err
			}
			g.instructions += len(text)
		}
		documents, err := documentsOf(name, text, g.budget)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, d := range documents {
			if err := g.plugin(d.value, folder, within); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func isMap(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

func (g *gathering) plugin(value any, folder string, within []string) error {
	// What was read from YAML can be encoded.
	encoded, _ := json.Marshal(value)
	var p plugin
	if err := json.Unmarshal(encoded, &p); err != nil {
		return fmt.Errorf("it is no configuration of a plugin: %w", err)
	}
	if p.APIVersion != konfig.BuiltinPluginApiVersion || !slices.Contains(builtin, p.Kind) {
		return fmt.Errorf("it is a plugin of apiVersion %q and kind %q, and nothing is run or fetched for a kustomization: use one that is built in "+
			"(apiVersion: builtin), or build it beforehand and take what comes of it as resources", p.APIVersion, p.Kind)
	}
	k := types.Kustomization{
		Patches:      []types.Patch{{Path: p.Path, Patch: p.Patch}, {Patch: p.JSONOp}},
		Replacements: p.Replacements,
	}
	k.PatchesStrategicMerge = p.Paths //nolint:staticcheck // Plugins have it.
	if p.Kind == "ConfigMapGenerator" || p.Kind == "SecretGenerator" {
		k.ConfigMapGenerator = []types.ConfigMapArgs{{GeneratorArgs: types.GeneratorArgs{KvPairSources: p.KvPairSources}}}
	}
	if err := refuse(&k); err != nil {
		return err
	}
	return g.follow(&k, folder, within)
}
