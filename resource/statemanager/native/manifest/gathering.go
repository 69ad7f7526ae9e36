package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// gathering goes the way that kustomize is going to go, and takes along the files that it needs. What leads elsewhere is
// refused before kustomize, which would follow it, sees it.
type gathering struct {
	files  fs.FS
	budget *budget
	to     filesys.FileSystem
	// instructions is how many bytes there are that may be put into each object, and objects how many objects.
	instructions, objects int
	replacements          []types.Replacement
	vars                  expansion
}

// gather takes along a kustomization, and finds out whether building it stays within bounds.
func gather(files fs.FS, folder string, budget *budget) (filesys.FileSystem, error) {
	g := &gathering{files: files, budget: budget, to: filesys.MakeFsInMemory()}
	if err := g.kustomization(folder, nil); err != nil {
		return nil, err
	}
	if g.instructions*g.objects > largestProduct {
		return nil, fmt.Errorf("its kustomizations and patches have %d bytes for %d objects: split the service", g.instructions, g.objects)
	}
	if err := growing(g.replacements); err != nil {
		return nil, err
	}
	return g.to, g.expanding()
}

// largestProduct bounds what comes of putting all that a kustomization says into all of its objects.
const largestProduct = 512 << 20

// kustomization takes the kustomization of a folder, and all that it names. Within are the folders that lead to it.
func (g *gathering) kustomization(folder string, within []string) error {
	if slices.Contains(within, folder) {
		return fmt.Errorf("the kustomization in %q is part of itself", folder)
	}
	if err := g.budget.takeKustomization(); err != nil {
		return err
	}
	within = append(slices.Clone(within), folder)
	var names []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if info, err := fs.Stat(g.files, path.Join(folder, name)); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		return fmt.Errorf("the folder %q needs one of the files %s, and has %d", folder,
			strings.Join(konfig.RecognizedKustomizationFileNames(), ", "), len(names))
	}
	name := path.Join(folder, names[0])
	data, err := g.take(name, true)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	g.instructions += len(data)
	var k types.Kustomization
	if err := k.Unmarshal(data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	k.FixKustomization()
	if err := refuse(&k); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := g.follow(&k, folder, within); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// refuse refuses what would run something, or change what later builds do.
func refuse(k *types.Kustomization) error {
	for _, field := range []struct {
		name string
		used bool
	}{
		{"validators", len(k.Validators) > 0},
		{"helmCharts", len(k.HelmCharts) > 0},
		{"helmGlobals", k.HelmGlobals != nil},
		{"helmChartInflationGenerator", len(k.HelmChartInflationGenerator) > 0},
		{"openapi", len(k.OpenAPI) > 0},
	} {
		if field.used {
			return fmt.Errorf("it has %s, which are not supported here, since nothing is run or fetched, and nothing may grow without a bound: "+
				"build it beforehand, and take what comes of it as resources", field.name)
		}
	}
	for _, patch := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // Old kustomizations have it.
		if err := unbounded(patch.Patch); err != nil {
			return err
		}
	}
	return nil
}

// follow takes along all that a kustomization names.
func (g *gathering) follow(k *types.Kustomization, folder string, within []string) error {
	for _, entry := range slices.Concat(k.Resources, k.Bases, k.Components) { //nolint:staticcheck // Old kustomizations have bases.
		if err := g.resource(entry, folder, within); err != nil {
			return err
		}
	}
	g.vars.used = g.vars.used || len(k.Vars) > 0 //nolint:staticcheck // Old kustomizations have it.
	for _, name := range k.Configurations {
		if err := g.varReferencesIn(name, folder); err != nil {
			return err
		}
	}
	if err := g.plugins(slices.Concat(k.Generators, k.Transformers), folder, within); err != nil {
		return err
	}
	g.objects += len(k.ConfigMapGenerator) + len(k.SecretGenerator)
	var manifests, others []string
	manifests = append(manifests, k.Crds...)
	for _, patch := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // Old kustomizations have it.
		manifests = append(manifests, patch.Path)
	}
	for _, patch := range k.PatchesStrategicMerge { //nolint:staticcheck // Old kustomizations have it.
		if !strings.Contains(string(patch), "\n") {
			manifests = append(manifests, string(patch))
		}
	}
	for _, r := range k.Replacements {
		if r.Path == "" {
			g.replacements = append(g.replacements, r.Replacement)
			continue
		}
		found, err := g.replacementsIn(r.Path, folder)
		if err != nil {
			return err
		}
		g.replacements = append(g.replacements, found...)
	}
	arguments := make([]types.KvPairSources, 0, len(k.ConfigMapGenerator)+len(k.SecretGenerator))
	for _, generator := range k.ConfigMapGenerator {
		arguments = append(arguments, generator.KvPairSources)
	}
	for _, generator := range k.SecretGenerator {
		arguments = append(arguments, generator.KvPairSources)
	}
	for _, sources := range arguments {
		for _, file := range sources.FileSources {
			_, name, named := strings.Cut(file, "=")
			if !named {
				name = file
			}
			others = append(others, name)
		}
		others = append(others, sources.EnvSources...)
		others = append(others, sources.EnvSource)
	}
	for i, name := range slices.Concat(manifests, others) {
		if name == "" {
			continue
		}
		data, err := g.file(name, folder, i < len(manifests))
		if err != nil {
			return err
		}
		g.instructions += len(data)
		if i >= len(manifests) {
			g.vars.references += g.vars.seen(string(data)) // What a generator makes of it has them too.
		}
	}
	return nil
}

// resource takes along a file with objects, or another kustomization.
func (g *gathering) resource(entry, folder string, within []string) error {
	target, err := resolve(entry, folder)
	if err != nil {
		return err
	}
	info, err := fs.Stat(g.files, target)
	if err != nil {
		return fmt.Errorf("it names %q, and there is no such file or folder", entry)
	}
	if info.IsDir() {
		return g.kustomization(target, within)
	}
	data, err := g.file(entry, folder, false)
	if err != nil {
		return err
	}
	documents, err := documentsOf(target, data, g.budget)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	g.objects += len(documents)
	for _, d := range documents {
		g.vars.references += g.vars.seen(d.value)
	}
	return nil
}

// file takes along a file in or below a folder.
func (g *gathering) file(name, folder string, isYAML bool) ([]byte, error) {
	target, err := resolve(name, folder)
	if err != nil {
		return nil, err
	}
	if folder != "." && !strings.HasPrefix(target, folder+"/") {
		return nil, fmt.Errorf("it names the file %q, which is not in or below its folder: kustomize does not allow that", name)
	}
	data, err := g.take(target, isYAML)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("it names the file %q, which does not exist", name)
	}
	if err == nil && isYAML {
		err = unbounded(string(data))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	return data, nil
}

// take takes along a file, and counts what is in it.
func (g *gathering) take(name string, isYAML bool) ([]byte, error) {
	data, err := readFile(g.files, name, g.budget)
	if err != nil {
		return nil, err
	}
	g.vars.longest = max(g.vars.longest, len(data))
	if isYAML {
		values, err := parse(data, g.budget)
		if err != nil {
			return nil, err
		}
		g.vars.instructions += g.vars.seen(values)
	}
	return data, g.to.WriteFile(path.Join("/", name), data)
}

// resolve returns the path of what a kustomization in a folder names. Whatever kustomize could take for an address is refused,
// and what leads out of the source.
func resolve(name, folder string) (string, error) {
	if strings.ContainsAny(name, ":@?\\") || strings.Contains(name, "//") || strings.HasPrefix(strings.ToLower(name), "github.com/") {
		return "", fmt.Errorf("it names %q, which is not part of its source: nothing is fetched for a kustomization, so put it in there", name)
	}
	if path.IsAbs(name) {
		return "", fmt.Errorf("it names %q: paths are relative", name)
	}
	target := path.Join(folder, name)
	if !fs.ValidPath(target) {
		return "", fmt.Errorf("it names %q, which leads out of its source", name)
	}
	return target, nil
}
