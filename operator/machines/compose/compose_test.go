package compose_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/machines/compose"
)

var update = flag.Bool("update", false, "write what comes out into testdata")

// converted returns what becomes of a project, as text: the services, then the remarks.
func converted(t *testing.T, source compose.Source) (string, *compose.Converted, error) {
	t.Helper()
	project, err := compose.Load(t.Context(), source)
	if err != nil {
		return "", nil, err
	}
	out, err := compose.Convert(project)
	if err != nil {
		return "", nil, err
	}
	directory, err := filepath.Abs(filepath.Dir(source.Files[0]))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, svc := range out.Services {
		text, err := yaml.Marshal(svc)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n" + string(text))
	}
	b.WriteString("---\n")
	for _, r := range out.Remarks {
		b.WriteString("# " + r.String() + "\n")
	}
	return strings.ReplaceAll(b.String(), directory, "/project"), out, nil
}

func TestAProjectBecomesServicesAndWhatHasNoCounterpartIsNamed(t *testing.T) {
	source := compose.Source{Files: []string{"testdata/shop/docker-compose.yaml"}, Environment: []string{"VERSION=2"}, Profiles: []string{"agents"}}
	got, out, err := converted(t, source)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/shop/services.yaml"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, _, err := converted(t, source)
	if err != nil || again != got {
		t.Errorf("another time it is otherwise: %v\n%s", err, cmp.Diff(got, again))
	}
	if lacking := len(out.Lacking()); lacking == 0 || lacking == len(out.Remarks) {
		t.Errorf("%d of %d remarks are about what has no counterpart", lacking, len(out.Remarks))
	}
}

func TestWhatCantBeAServiceIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"services: {web: {build: .}}":                                             "services.web: image: there is none: machines don't build images",
		"services: {web: {image: app, x-ports: [80/icmp]}}":                       `services.web: x-ports[0]: port "80/icmp": the protocol is none of`,
		"services: {web: {image: app, ports: ['80:80', '80:81']}}":                "services.web: ports[1]: Invalid value: ",
		"services: {web: {image: app}, WEB: {image: app}}":                        "services.WEB and services.web would have the same name web",
		"services: {web: {image: app, configs: [c]}}\nconfigs: {c: {file: none}}": "services.web: configs.c: open ",
		"services: {web: {image: app, volumes: [{type: secret}]}}":                "read the Compose files: ",
		"services: {web: {image: app, color: red}}":                               "read the Compose files: ",
	} {
		file := filepath.Join(t.TempDir(), "compose.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := converted(t, compose.Source{Files: []string{file}, ProjectName: "p"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestWhatIsNoTextIsAnError(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	store := file("store.p12", "\xff\xfe")
	file("web.env", "TOKEN=\xff\n")
	for text, want := range map[string]string{
		"services: {web: {image: app, configs: [store]}}\nconfigs: {store: {file: store.p12}}": "services.web: configs.store: " + store +
			" is no text, and would not arrive as it is: make a ConfigMap of it (kubectl create configmap NAME --from-file=store=FILE)",
		"services: {web: {image: app, configs: [c]}}\nconfigs: {c: {content: !!binary /w==}}": "services.web: configs.c: its content is no text",
		"services: {web: {image: app, env_file: web.env}}":                                    "services.web: environment.TOKEN: its value is no text",
	} {
		source := compose.Source{Files: []string{file("compose.yaml", text)}, ProjectName: "p"}
		if _, _, err := converted(t, source); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
