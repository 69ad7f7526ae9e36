package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// crdFolder has the definitions, and namespaceFile the namespace, which Helm makes itself.
const (
	crdFolder     = "crds"
	namespaceFile = "namespace"
)

// printManifests prints everything as one YAML stream.
func printManifests(w io.Writer, files []manifestFile) error {
	for _, file := range files {
		for _, object := range file.objects {
			if err := printManifest(w, object); err != nil {
				return fmt.Errorf("print %s: %w", file.name, err)
			}
		}
	}
	return nil
}

// text returns the file as it is written.
func (f manifestFile) text() ([]byte, error) {
	var text bytes.Buffer
	if err := printManifests(&text, []manifestFile{f}); err != nil {
		return nil, err
	}
	return bytes.TrimPrefix(text.Bytes(), []byte("---\n")), nil
}

// writeFile writes a file of a folder, which is made if need be.
func writeFile(folder, name string, text []byte) error {
	name = filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // manifests are no secret
		return fmt.Errorf("write manifests: %w", err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // manifests are no secret
		return fmt.Errorf("write manifests: %w", err)
	}
	return nil
}

// writeKustomization writes a folder for kustomize.
func writeKustomization(stdout io.Writer, folder string, files []manifestFile) error {
	var names []any
	for _, file := range files {
		text, err := file.text()
		if err != nil {
			return err
		}
		if err := writeFile(folder, file.name, text); err != nil {
			return err
		}
		names = append(names, file.name)
	}
	kustomization, err := yaml.Marshal(map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names})
	if err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	if err := writeFile(folder, "kustomization.yaml", kustomization); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d files are in %s: kubectl apply --server-side -k %s\n", len(files)+1, folder, folder)
	return err
}

// chartValue is a value of a chart, which a template takes in where a manifest has a string with its name.
func chartValue(name string) string { return "@values." + name + "@" }

// chartNamespace stands for the namespace of a release.
const chartNamespace = "@namespace@"

// placeholder matches a value in a line of a manifest: where it stands alone it may be more than a string.
var placeholder = regexp.MustCompile(`(?m)^( *)((?:- )?[A-Za-z]+:) ["']?@values\.([A-Za-z]+)@["']?$`)

// templated makes a template of a manifest: what it says by itself in braces stays as it is.
func templated(manifest []byte) []byte {
	text := strings.NewReplacer("{{", `{{ "{{" }}`, "}}", `{{ "}}" }}`).Replace(string(manifest))
	text = placeholder.ReplaceAllStringFunc(text, func(line string) string {
		parts := placeholder.FindStringSubmatch(line)
		return fmt.Sprintf("%s%s {{- toYaml .Values.%s | nindent %d }}", parts[1], parts[2], parts[3], len(parts[1])+4)
	})
	for _, quote := range []string{"'", `"`} {
		text = strings.ReplaceAll(text, quote+chartNamespace+quote, "{{ .Release.Namespace }}")
	}
	return []byte(text)
}

// writeChart writes a Helm chart. Helm makes the namespace, and installs the definitions, which it never changes afterwards.
func (d *deployment) writeChart(stdout io.Writer, folder string, files []manifestFile) error {
	values := map[string]any{
		"image": d.options.image, "replicas": d.options.replicas, "imagePullSecrets": []any{}, "nodeSelector": map[string]any{}, "tolerations": []any{},
		"affinity": map[string]any{},
	}
	for _, file := range files {
		if file.name == namespaceFile+".yaml" {
			continue
		}
		name := file.name
		if !strings.HasPrefix(name, crdFolder+"/") {
			name = "templates/" + name
			for _, object := range file.objects {
				d.parametrize(object, values)
			}
		}
		text, err := file.text()
		if err != nil {
			return err
		}
		if name != file.name {
			text = templated(text)
		}
		if err := writeFile(folder, name, text); err != nil {
			return err
		}
	}
	version, err := semver.NewVersion(d.program.config.Version)
	if err != nil {
		version = semver.New(0, 0, 0, "unknown", "")
	}
	chart := map[string]any{
		"apiVersion": "v2", "name": d.name, "type": "application", "description": d.program.config.Short,
		"version": version.String(), "appVersion": d.program.config.Version,
	}
	for name, content := range map[string]map[string]any{"Chart.yaml": chart, "values.yaml": values} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("write manifests: %w", err)
		}
		if err := writeFile(folder, name, text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "a chart is in %s: helm install %s %s --namespace %s --create-namespace\n", folder, d.name, folder, d.namespace)
	return err
}

// parametrize has an object take its namespace from the release, unless the operator looks at that one and no other, and a Deployment what
// values say.
func (d *deployment) parametrize(object, values map[string]any) {
	u := unstructured.Unstructured{Object: object}
	if !slices.Contains(d.program.options.namespaces, d.namespace) {
		if u.GetNamespace() == d.namespace {
			u.SetNamespace(chartNamespace)
		}
		subjects, _ := object["subjects"].([]any)
		for _, subject := range subjects {
			subject.(map[string]any)["namespace"] = chartNamespace
		}
	}
	if u.GetKind() != "Deployment" {
		return
	}
	spec := object["spec"].(map[string]any)
	spec["replicas"] = chartValue("replicas")
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	for _, name := range []string{"imagePullSecrets", "nodeSelector", "tolerations", "affinity"} {
		pod[name] = chartValue(name)
	}
	container := pod["containers"].([]any)[0].(map[string]any)
	values["args"], values["resources"] = container["args"], container["resources"]
	for _, name := range []string{"image", "args", "resources"} {
		container[name] = chartValue(name)
	}
}
