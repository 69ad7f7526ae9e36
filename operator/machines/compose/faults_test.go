package compose_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/operator/machines/compose"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// write writes files below a folder of their own, and returns the folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "p")
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// convert converts one file, and returns the services by name and the remarks by path.
func convert(t *testing.T, text string) (map[string]*v1alpha1.MachineService, map[string]compose.Remark, error) {
	t.Helper()
	return convertFrom(t, compose.Source{Files: []string{filepath.Join(write(t, map[string]string{"compose.yaml": text}), "compose.yaml")}, ProjectName: "p"})
}

func convertFrom(t *testing.T, source compose.Source) (map[string]*v1alpha1.MachineService, map[string]compose.Remark, error) {
	t.Helper()
	project, err := compose.Load(t.Context(), source)
	if err != nil {
		return nil, nil, err
	}
	out, err := compose.Convert(project)
	if err != nil {
		return nil, nil, err
	}
	services, remarks := map[string]*v1alpha1.MachineService{}, map[string]compose.Remark{}
	for _, svc := range out.Services {
		services[svc.Name] = svc
	}
	for _, r := range out.Remarks {
		if _, twice := remarks[r.Path]; twice && r == remarks[r.Path] {
			t.Errorf("%s comes twice", r)
		}
		remarks[r.Path] = r
	}
	return services, remarks, nil
}

func TestVariablesAreThoseThatDockerComposeReads(t *testing.T) {
	folder := write(t, map[string]string{
		"compose.yaml":        `services: {db: {image: "postgres:${TAG:-16}", environment: {PASSWORD: "${PASSWORD:-changeme}", FROM: , HOME: "${COMPOSE_PROJECT_NAME}"}}, more: {image: app, profiles: [more]}}`,
		".env":                "TAG=17\nPASSWORD=from-file\nFROM=file\nCOMPOSE_PROJECT_NAME=named\nCOMPOSE_PROFILES=more\n",
		"a.env":               "TAG=1\nPASSWORD=a\n",
		"b.env":               "PASSWORD=b-${TAG}\n",
		"elsewhere/c.yaml":    `services: {db: {image: "postgres:${TAG:-none}"}}`,
		"elsewhere/.env":      "TAG=elsewhere\n",
		"selected/.env":       "COMPOSE_FILE=other.yaml\n",
		"selected/other.yaml": `services: {other: {image: app}}`,
	})
	in := func(name string) string { return filepath.Join(folder, name) }
	files := []string{in("compose.yaml")}
	for name, tt := range map[string]struct {
		source compose.Source
		want   string
	}{
		"the file .env":                {compose.Source{Files: files}, "postgres:17 from-file file named more"},
		"found in the directory":       {compose.Source{Directory: folder}, "postgres:17 from-file file named more"},
		"the environment counts first": {compose.Source{Files: files, Environment: []string{"TAG=18", "COMPOSE_PROFILES=", "PASSWORD="}}, "postgres:18 changeme file named"},
		"a file instead":               {compose.Source{Files: files, EnvFiles: []string{in("a.env")}, ProjectName: "x"}, "postgres:1 a  x"},
		"two files instead":            {compose.Source{Files: files, EnvFiles: []string{in("a.env"), in("b.env")}}, "postgres:1 b-1  p"},
		"files of the environment":     {compose.Source{Files: files, Environment: []string{"COMPOSE_ENV_FILES=" + in("a.env") + "," + in("b.env")}}, "postgres:1 b-1  p"},
		"no file":                      {compose.Source{Files: files, Environment: []string{"COMPOSE_DISABLE_ENV_FILE=1"}}, "postgres:16 changeme  p"},
		"another directory":            {compose.Source{Files: files, Directory: in("elsewhere"), Environment: []string{"PASSWORD=p"}}, "postgres:elsewhere p  elsewhere"},
		"a file of another one":        {compose.Source{Files: []string{in("elsewhere/c.yaml")}}, "postgres:elsewhere   "},
	} {
		t.Run(name, func(t *testing.T) {
			services, _, err := convertFrom(t, tt.source)
			if err != nil {
				t.Fatal(err)
			}
			db := services["db"].Spec.Container
			got := []string{db.Image, db.Env["PASSWORD"], db.Env["FROM"], db.Env["HOME"]}
			if services["more"] != nil {
				got = append(got, "more")
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
	t.Chdir(in("selected"))
	if services, _, err := convertFrom(t, compose.Source{}); err != nil || services["other"] == nil {
		t.Errorf("COMPOSE_FILE: %v, %v", services, err)
	}
	if _, _, err := convertFrom(t, compose.Source{Files: files, EnvFiles: []string{"absent.env"}}); err == nil || !strings.Contains(err.Error(), "absent.env") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestWhatCantBeConvertedIsNamedAndTheRestIsConverted(t *testing.T) {
	const app = "services: {web: {image: app, "
	for text, want := range map[string]string{
		app + "devices: [/dev/a, vendor.com/class=gpu0]}}":                                                     "services.web.devices[1]",
		app + "devices: [vendor.com/class=gpu0]}}":                                                             "services.web.devices",
		app + "gpus: [{count: 1}, {driver: other, count: 2}]}}":                                                "services.web.gpus[1]",
		app + "gpus: all, deploy: {resources: {reservations: {devices: [{capabilities: [gpu], count: 1}]}}}}}": "services.web.deploy.resources.reservations.devices",
		app + "gpus: [{count: 0}]}}":                                                                           "services.web.gpus",
		app + "depends_on: [llm]}, llm: {provider: {type: model, options: {model: ai/x}}}}":                    "services.llm.provider",
		app + "deploy: {mode: global, replicas: 3}}}":                                                          "services.web.deploy.replicas",
		app + "scale: 3, deploy: {mode: global}}}":                                                             "services.web.scale",
		app + "volumes: [/data], deploy: {replicas: 2}}}":                                                      "services.web.volumes[0]: containers of one machine share it",
		app + "platform: linux/arm/v7}}":                                                                       "services.web.platform (v7)",
		app + "platform: windows/amd64}}":                                                                      "",
		app + "platform: windows}}":                                                                            "services.web.platform",
		app + "ports: ['8000-8005:8000-8005', '9000-9010:80']}}":                                               "services.web.ports (9000-9010:80/tcp)",
		app + "ports: [{target: 80, app_protocol: http2}]}}":                                                   "services.web.ports (80/tcp).app_protocol",
		app + "links: [db]}, db: {image: db}}":                                                                 "services.web.links",
		app + "network_mode: 'service:db'}, db: {image: db}}":                                                  "services.web.network_mode",
		app + "volumes_from: [db]}, db: {image: db}}":                                                          "services.web.volumes_from",
		app + "volumes: ['/a:/a:z']}}":                                                                         "services.web.volumes[0].bind.selinux",
		app + "x-caddy: {}}}":                                                                                  "services.web.x-caddy",
		app + "expose: [80]}}":                                                                                 "services.web.expose",
		app + "logging: {options: {max-size: 10m}}}}":                                                          "services.web.logging.options",
		app + "deploy: {labels: {a: b}}}}":                                                                     "services.web.deploy.labels",
		app + "blkio_config: {weight: 3}}}":                                                                    "services.web.blkio_config.weight",
		app + "profiles: [a, b]}, other: {image: app}}":                                                        "services.web",
		app + "}}\njobs: {migrate: {image: app, triggers: {manual: true}}}":                                    "jobs.migrate",
		app + "}}\nnetworks: {default: {internal: true}}":                                                      "networks.default.internal",
		app + "}}\nnetworks: {default: {name: other}}":                                                         "networks.default",
		app + "}}\nnetworks: {default: {ipam: {config: [{subnet: 10.0.0.0/24}]}}}":                             "networks.default.ipam.config",
		app + "}}\nvolumes: {unused: {}}":                                                                      "volumes.unused",
		app + "}}\nmodels: {llm: {model: ai/x}}":                                                               "models.llm",
		app + "configs: [c]}}\nconfigs: {c: {content: a, labels: {a: b}}}":                                     "configs.c.labels",
		app + "secrets: [s]}}\nsecrets: {s: {file: a, template_driver: golang}}":                               "secrets.s.template_driver",
		app + "}}\nx-common: {}":                                                                               "x-common",
	} {
		services, remarks, err := convert(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want == "" {
			if len(remarks) > 0 {
				t.Errorf("%s: got %v", text, remarks)
			}
			continue
		}
		path, _, _ := strings.Cut(want, ": ")
		if remark, named := remarks[path]; !named || !strings.HasPrefix(remark.String(), want) || len(services) == 0 {
			t.Errorf("%s: got %v, want %s", text, slices.Sorted(maps.Keys(remarks)), want)
		}
		if _, named := remarks["services.web.depends_on"]; named && !strings.Contains(text, "depends_on") {
			t.Errorf("%s: what is implied is named", text)
		}
	}
}

func TestPlatformsAreThoseOfMachines(t *testing.T) {
	for platform, want := range map[string]string{
		"linux": "", "linux/amd64": "linux/amd64", "amd64": "linux/amd64", "x86_64": "linux/amd64", "linux/aarch64": "linux/arm64",
		"linux/arm64/v8": "linux/arm64", "linux/arm/v7": "linux/arm", "armhf": "linux/arm", "Linux/AMD64": "linux/amd64",
	} {
		services, remarks, err := convert(t, "services: {web: {image: app, platform: "+platform+"}}")
		if err != nil || services["web"].Spec.Placement.Platform != want {
			t.Errorf("%s: got %+v, %v, want %s", platform, services, err, want)
		}
		if variant := want == "linux/arm"; (len(remarks) > 0) != variant {
			t.Errorf("%s: %v", platform, remarks)
		}
	}
}

func TestEmptyIsNotAbsent(t *testing.T) {
	for text, want := range map[string][2][]string{
		"": {nil, nil}, "command: [], ": {{}, nil}, "entrypoint: [], ": {nil, {}}, "entrypoint: '', command: sh, ": {{"sh"}, {}}, "command: null, ": {nil, nil},
	} {
		services, _, err := convert(t, "services: {web: {"+text+"image: app}}")
		if err != nil {
			t.Fatal(err)
		}
		c := services["web"].Spec.Container
		if diff := cmp.Diff(want, [2][]string{c.Command, c.Entrypoint}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestPlacementNarrows(t *testing.T) {
	for text, want := range map[string]string{
		"x-machines: [m1, m3], deploy: {placement: {constraints: [node.hostname == m1]}}": "m1",
		"x-machines: [m1, m3, m1]": "m1 m3",
		"deploy: {placement: {constraints: [node.hostname==m2, node.hostname == m2]}}":    "m2",
		"deploy: {placement: {constraints: [node.labels.a==b, node.labels.a == b]}}":      "",
		"x-machines: [m1, m3], deploy: {placement: {constraints: [node.hostname == m2]}}": "services.web: deploy.placement.constraints[0] (node.hostname == m2): no machine is left of m1, m3",
		"deploy: {placement: {constraints: [node.hostname == m1, node.hostname == m2]}}":  "services.web: deploy.placement.constraints[1] (node.hostname == m2): no machine is left of m1",
		"deploy: {placement: {constraints: [node.labels.a == b, node.labels.a == c]}}":    "services.web: deploy.placement.constraints[1] (node.labels.a == c): no machine is left: another",
		"x-machines: m1":   "m1",
		"x-machines: [{}]": "services.web: x-machines: it is no list of texts",
	} {
		services, _, err := convert(t, "services: {web: {image: app, "+text+"}}")
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(services["web"].Spec.Placement.Machines, " ")
		}
		if got != want && (err == nil || want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestVolumesWithoutNamesAreThoseOfNoOther(t *testing.T) {
	services, _, err := convert(t, `services:
  web:
    image: app
    tmpfs: [/m]
    volumes: [/host:/x, bb:/y, tt:/z, mm:/n, {type: tmpfs, target: /t}, /a/b, /a-b, own:/own]
  web-a: {image: app, volumes: [/b]}
volumes: {bb: {name: bind-0}, tt: {name: tmpfs-4}, mm: {name: memory-0}, own: {name: p-web-a-b}}`)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for name, svc := range services {
		for _, m := range svc.Spec.Container.VolumeMounts {
			if at := seen[m.Volume]; at != "" {
				t.Errorf("%s and %s%s are one volume, %s", at, name, m.Path, m.Volume)
			}
			seen[m.Volume] = name + m.Path
		}
	}
	spec := services["web"].Spec
	for _, v := range spec.Volumes {
		if (v.Type == api.VolumeTypeBind) != (v.HostPath == "/host") || v.Name == "bind-0" && v.Type == api.VolumeTypeBind {
			t.Errorf("got %+v", v)
		}
	}
	if _, _, err := convert(t, "services: {web: {image: app, volumes: ['aa:/a', 'bb:/b']}}\nvolumes: {aa: {name: x1, driver: nfs}, bb: {name: x1}}"); err == nil ||
		!strings.Contains(err.Error(), "volumes[1]: two volumes of the project are called x1, and differ") {
		t.Errorf("two volumes of one name: %v", err)
	}
}

func TestNamesWithoutLettersAndDigitsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"services: {_: {image: app}}": `services._: "_" has no letter or digit for the name of an object: give it another name`,
		"services: {web: {image: app, secrets: [s]}}\nsecrets: {s: {external: true, name: _}}": `services.web: secrets.s: "_" has no letter or digit`,
		"services: {web: {image: app, configs: [s]}}\nconfigs: {s: {environment: UNSET_HERE}}": `services.web: configs.s: the variable UNSET_HERE is not set`,
	} {
		if _, _, err := convert(t, text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestWhatEnginesTakeIsTaken(t *testing.T) {
	folder := write(t, map[string]string{
		"raw.env": "# no comment\n\nQUOTED=\"a\" # b\nPRICE=$5\nFROM_OUTSIDE\n", "labels": "from=file\nboth=file\n", "plain.env": "QUOTED='c'\nLAST=1\n",
		"compose.yaml": `services:
  web:
    image: app
    env_file: [{path: raw.env, format: raw}, {path: plain.env}, {path: absent.env, required: false}]
    environment: {Logging:LogLevel:Default: Debug, 2FA: "on", LAST: "2"}
    label_file: labels
    labels: {both: here}
    ports: ["0.0.0.0:80:80", "[::]:80:80"]
    x-ports: ["81:8080@host", 9000, "app:9001/http"]
    volumes: [{type: bind, source: /x, target: /x}, /x:/y]
    secrets: [s, {source: s, target: /s}]
secrets: {s: {file: token}}`,
	})
	services, remarks, err := convertFrom(t, compose.Source{Files: []string{filepath.Join(folder, "compose.yaml")}, Environment: []string{"FROM_OUTSIDE=yes"}})
	if err != nil {
		t.Fatal(err)
	}
	c := services["web"].Spec.Container
	want := map[string]string{"QUOTED": "c", "PRICE": "$5", "FROM_OUTSIDE": "yes", "Logging:LogLevel:Default": "Debug", "2FA": "on", "LAST": "2"}
	if diff := cmp.Diff(want, c.Env); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"from": "file", "both": "here"}, c.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	var ports []string
	for _, p := range services["web"].Spec.Ports {
		ports = append(ports, p.String())
	}
	if diff := cmp.Diff([]string{"0.0.0.0:80:80/tcp", "[::]:80:80/tcp", "81:8080/tcp", "9000/tcp", "app:9001/http"}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if !services["web"].Spec.Volumes[0].CreateHostPath {
		t.Error("a path of the machine is not created")
	}
	if diff := cmp.Diff([]string{"services.web.secrets.s", "services.web.volumes[0]", "services.web.x-ports[2]"}, slices.Sorted(maps.Keys(remarks))); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}
}

func TestLinesForAShellCanBePasted(t *testing.T) {
	for path, want := range map[string]string{
		"token.txt": "--from-file=token=PATH", "a b/$(touch x)'`.txt": "--from-file=token=PATH", "a=b": "--from-file=token=/dev/stdin", "-x;y": "--from-file=token=PATH",
	} {
		folder := write(t, map[string]string{path: "content", "compose.yaml": "services: {web: {image: app, secrets: [token]}}\nsecrets: {token: {file: \"" + path + "\"}}"})
		_, remarks, err := convertFrom(t, compose.Source{Files: []string{filepath.Join(folder, "compose.yaml")}})
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(remarks["services.web.secrets.token"].Text, "make it: ")
		got := pasted(t, line)
		if want := "create secret generic p-token " + strings.ReplaceAll(want, "PATH", filepath.Join(folder, path)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for name, want := range map[string]string{"TOKEN": "create secret generic p-token --from-literal=token=it's $x", "UNSET_HERE": ""} {
		_, remarks, err := convert(t, "services: {web: {image: app, secrets: [token]}}\nsecrets: {token: {environment: "+name+"}}")
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(remarks["services.web.secrets.token"].Text, "make it: ")
		t.Setenv("TOKEN", "it's $x")
		if got := pasted(t, line); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// pasted returns the arguments that kubectl gets from a shell, or nothing if it is not run.
func pasted(t *testing.T, line string) string {
	t.Helper()
	out, _ := exec.CommandContext(t.Context(), "sh", "-c", "kubectl() { printf '%s ' \"$@\"; }\n"+line).Output()
	return strings.TrimSpace(string(out))
}
