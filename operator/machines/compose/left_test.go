package compose_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/machines/compose"
)

// outcome is what becomes of a field.
type outcome string

const (
	isConverted outcome = "converted"
	isNamed     outcome = "named"
	isRefused   outcome = "refused"
	isDropped   outcome = "left out without a word"
)

// whatBecomes returns what becomes of what one project has more than another.
func whatBecomes(t *testing.T, before, after *types.Project) (outcome, string) {
	t.Helper()
	was, err := compose.Convert(before)
	if err != nil {
		t.Fatal(err)
	}
	is, err := compose.Convert(after)
	if err != nil {
		return isRefused, err.Error()
	}
	var named, news []string
	for _, r := range is.Remarks {
		if !slices.Contains(was.Remarks, r) {
			news = append(news, r.String())
		}
	}
	for _, r := range news {
		if strings.Contains(r, "left out") {
			named = append(named, r)
		}
	}
	switch {
	case len(named) > 0:
		return isNamed, strings.Join(named, "\n")
	case len(news) > 0 || text(t, was) != text(t, is):
		return isConverted, ""
	}
	return isDropped, ""
}

func text(t *testing.T, converted *compose.Converted) string {
	t.Helper()
	out, err := yaml.Marshal(converted.Services)
	if err != nil {
		t.Fatal(err)
	}
	for _, svc := range converted.Services {
		// Empty is another thing than absent.
		out = fmt.Appendf(out, "%v %v", svc.Spec.Container.Command == nil, svc.Spec.Container.Entrypoint == nil)
	}
	return string(out)
}

// base is a project with one of everything, so that each field has a place.
func base() *types.Project {
	return &types.Project{
		Name: "p",
		Services: types.Services{"db": {Name: "db", ContainerSpec: types.ContainerSpec{Image: "db"}}, "web": {
			Name: "web",
			ContainerSpec: types.ContainerSpec{
				Image:   "app",
				Configs: []types.ServiceConfigObjConfig{{Source: "c", Target: "/c"}},
				Secrets: []types.ServiceSecretConfig{{Source: "s", Target: "/s"}},
				Volumes: []types.ServiceVolumeConfig{
					{Type: "volume", Source: "v", Target: "/v", Volume: &types.ServiceVolumeVolume{}},
					{Type: "bind", Source: "/b", Target: "/b", Bind: &types.ServiceVolumeBind{CreateHostPath: true}},
					{Type: "tmpfs", Target: "/t", Tmpfs: &types.ServiceVolumeTmpfs{}},
				},
				Devices: []types.DeviceMapping{{Source: "/dev/a", Target: "/dev/a", Permissions: "rwm"}},
				Gpus:    []types.DeviceRequest{{Count: -1}},
				Ulimits: map[string]*types.UlimitsConfig{"nofile": {Soft: 3, Hard: 3}},
				Logging: &types.LoggingConfig{Driver: "local"},
			},
			WorkloadSpec: types.WorkloadSpec{
				DependsOn:   types.DependsOnConfig{"db": {Condition: "service_started", Required: true}},
				HealthCheck: &types.HealthCheckConfig{},
				Ports:       []types.ServicePortConfig{{Target: 80, Published: "80", Protocol: "tcp", Mode: "ingress"}},
			},
			Deploy: &types.DeployConfig{
				UpdateConfig: &types.UpdateConfig{},
				Resources:    types.Resources{Limits: &types.Resource{}, Reservations: &types.Resource{}},
			},
			Extensions: types.Extensions{},
		}},
		Networks: types.Networks{"default": {Name: "p_default"}},
		Volumes:  types.Volumes{"v": {Name: "p_v"}},
		Configs:  types.Configs{"c": {Name: "p_c", Content: "c"}},
		Secrets:  types.Secrets{"s": {Name: "p_s", File: "s"}},
	}
}

// samples are values of fields that can't have any.
var samples = map[string]any{
	"services.web.depends_on.db.condition":             "service_completed_successfully",
	"services.web.deploy.mode":                         "global",
	"services.web.deploy.update_config.failure_action": "rollback",
	"services.web.deploy.update_config.order":          "stop-first",
	"services.web.deploy.placement.constraints":        []string{"node.hostname == m1"},
	"services.web.deploy.restart_policy.condition":     "none",
	"services.web.devices[0].permissions":              "r",
	"services.web.devices[0].source":                   "/dev/b",
	"services.web.devices[0].target":                   "/dev/b",
	"services.web.gpus[0].count":                       types.DeviceCount(2),
	"services.web.healthcheck.timeout":                 new(types.Duration(1e9)),
	"services.web.healthcheck.interval":                new(types.Duration(1e9)),
	"services.web.healthcheck.start_period":            new(types.Duration(1e9)),
	"services.web.healthcheck.start_interval":          new(types.Duration(1e9)),
	"services.web.healthcheck.test":                    types.HealthCheckTest{"CMD", "true"},
	"services.web.mem_reservation":                     types.UnitBytes(1),
	"services.web.platform":                            "linux/arm64",
	"services.web.pid":                                 "host",
	"services.web.pull_policy":                         "always",
	"services.web.restart":                             "on-failure",
	"services.web.tmpfs":                               types.StringList{"/memory"},
	"services.web.ulimits.nofile.soft":                 2,
	"services.web.ulimits.nofile.hard":                 4,
	"services.web.volumes[0].target":                   "/other",
	"services.web.volumes[1].target":                   "/other",
	"services.web.volumes[2].target":                   "/other",
	"services.web.volumes[1].source":                   "/other",
	"services.web.volumes[0].volume.subpath":           "sub",
	"services.web.volumes[1].bind.propagation":         "rslave",
	"services.web.ports[0].mode":                       "host",
	"services.web.ports[0].host_ip":                    "10.0.0.1",
	"services.web.ports[0].published":                  "81",
	"services.web.ports[0].protocol":                   "udp",
	"services.web.configs[0].uid":                      "1",
	"services.web.configs[0].gid":                      "1",
	"services.web.secrets[0].uid":                      "1",
	"services.web.secrets[0].gid":                      "1",
	"configs.c.environment":                            "UNSET",
}

// silent are fields that need no word, and why.
var silent = map[string]string{
	"composefiles": "where the project is from", "workingdir": "where the files are", "profiles": "what was chosen", "environment.x-new": "what the files are read with",
	"services.web.configs[0].source": "there is no such config", "services.web.secrets[0].source": "another secret is named as not used",
	"services.web.ports[0].mode": "either is a port of the machine", "services.web.volumes[0].source": "another volume is named as not used",
	"name": "it begins names of volumes", "services.web.name": "it is the key", "services.web.profiles": "they were chosen",
}

// change sets each field of a value to something else, one after the other, and calls changed with its path.
func change(path string, v reflect.Value, changed func(path string)) {
	set := func(to reflect.Value) {
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		v.Set(to)
		changed(path)
		v.Set(before)
	}
	if path == "services.db" {
		// It is there for the other one.
		return
	}
	if sample, ok := samples[path]; ok {
		set(reflect.ValueOf(sample).Convert(v.Type()))
		return
	}
	switch {
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			defer v.SetZero()
		}
		change(path, v.Elem(), changed)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			switch {
			case !f.IsExported():
			case f.Anonymous:
				change(path, v.Field(i), changed)
			case f.Type == reflect.TypeFor[types.Extensions]():
				change(path, v.Field(i), changed)
			case name == "" || name == "-":
				change(dotted(path, strings.ToLower(f.Name)), v.Field(i), changed)
			default:
				change(dotted(path, name), v.Field(i), changed)
			}
		}
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			before, element := v.MapIndex(key), reflect.New(v.Type().Elem()).Elem()
			element.Set(before)
			change(dotted(path, key.String()), element, func(path string) {
				v.SetMapIndex(key, element)
				changed(path)
			})
			v.SetMapIndex(key, before)
		}
		added, key := reflect.MakeMap(v.Type()), reflect.ValueOf("x-new")
		for _, key := range v.MapKeys() {
			added.SetMapIndex(key, v.MapIndex(key))
		}
		added.SetMapIndex(key, something(v.Type().Elem()))
		path = dotted(path, "x-new")
		set(added)
	case v.Kind() == reflect.Slice && v.Len() > 0:
		for i := range v.Len() {
			change(fmt.Sprintf("%s[%d]", path, i), v.Index(i), changed)
		}
	case v.Type() == reflect.TypeFor[types.OptOut]():
		// True is not to say anything.
		set(reflect.ValueOf(types.OptOut(false)))
	case v.Kind() == reflect.Bool:
		set(reflect.ValueOf(!v.Bool()).Convert(v.Type()))
	default:
		set(something(v.Type()))
	}
}

func dotted(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// something returns a value of a type that is not its zero value, in all of its parts.
func something(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(something(t.Elem()))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(something(t.Field(i).Type))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.ValueOf("x-new"), something(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, something(t.Elem())))
	case reflect.Interface, reflect.String:
		v.Set(reflect.ValueOf("new").Convert(t))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	default:
		v.SetUint(7)
	}
	return v
}

// indices are those of lists.
var indices = regexp.MustCompile(`\[[0-9]+\]`)

// part returns the part of a project that a path is in: a key of a service, or a thing of the project.
func part(path string) string {
	names := strings.Split(strings.TrimPrefix(indices.ReplaceAllString(path, ""), "disabled"), ".")
	if names[0] == "services" && names[1] == "web" {
		return strings.Join(names[:min(3, len(names))], ".")
	}
	return strings.Join(names[:min(2, len(names))], ".")
}

func TestNoFieldIsLeftOutWithoutAWord(t *testing.T) {
	after, table, outcomes := base(), documented(t), map[string][]outcome{}
	fields := 0
	change("", reflect.ValueOf(after).Elem(), func(path string) {
		fields++
		is, words := whatBecomes(t, base(), after)
		_, ok := silent[path]
		switch {
		case ok:
			return
		case is == isDropped:
			t.Errorf("%s is %s", path, is)
		case is == isNamed && !strings.Contains(indices.ReplaceAllString(words, ""), part(path)):
			t.Errorf("%s is named as %s", path, words)
		}
		key := strings.TrimSuffix(keyed.ReplaceAllString(indices.ReplaceAllString(path, ""), "$1"), ".x-new")
		key = strings.ReplaceAll(key, ".db.", ".")
		if _, ok := elsewhere[key]; !ok && is != isRefused && specified()[key] && !strings.Contains(words, "x-new:") {
			outcomes[key] = append(outcomes[key], is)
		}
	})
	if fields < 300 {
		t.Errorf("only %d fields were looked at", fields)
	}
	// A key of several things is converted if it is for one of them.
	for key, is := range outcomes {
		if want := table.of(key); !slices.Contains(is, want) || want == isNamed && slices.Contains(is, isConverted) {
			t.Errorf("docs/machines.md says that %s is %s, and it is %s", key, want, is)
		}
	}
}

// keyed are things that have names in the project.
var keyed = regexp.MustCompile(`^(services|networks|volumes|configs|secrets|jobs|models)\.(web|default|v|c|s|x-new)\b`)

// elsewhere are keys that become what the table says in other company than here.
var elsewhere = map[string]string{
	"services.env_file": "Load reads it", "services.label_file": "Load reads it",
	"services.extends.file": "Load carries it out", "services.extends.service": "Load carries it out",
	"services.deploy.restart_policy.max_attempts":    "it needs on-failure",
	"services.deploy.resources.reservations.devices": "the service has another request for GPUs",
	"secrets.environment":                            "the secret is of a file", "secrets.external": "the secret is of a file",
	"services.volumes.type": "there is no type of this name", "configs.external": "the config has a content", "volumes": "no service has the other one", "configs": "no service has the other one",
	"secrets": "no service has the other one", "services": "the other one is disabled",
}

// specified returns the keys of the specification, without names and indices.
var specified = sync.OnceValue(func() map[string]bool {
	keys := map[string]bool{}
	for _, path := range schema.AttributePaths() {
		names := slices.DeleteFunc(path.Parts(), func(name string) bool { return name == "*" || name == "[]" })
		keys[strings.Join(names, ".")] = true
	}
	return keys
})

// documentation is what docs/machines.md says about keys.
type documentation map[string]outcome

// of returns what it says about a key, or about the nearest one above it.
func (d documentation) of(key string) outcome {
	for {
		if is, ok := d[key]; ok {
			return is
		}
		i := strings.LastIndex(key, ".")
		if i < 0 {
			return ""
		}
		key = key[:i]
	}
}

// documented reads the tables in docs/machines.md.
func documented(t *testing.T) documentation {
	t.Helper()
	text, err := os.ReadFile("../../../docs/machines.md")
	if err != nil {
		t.Fatal(err)
	}
	table := documentation{}
	for prefix, heading := range map[string]string{"": "### Keys of a project\n", "services.": "### Keys of a service\n"} {
		_, section, _ := strings.Cut(string(text), heading)
		section, _, _ = strings.Cut(section, "\n##")
		for line := range strings.Lines(section) {
			cells := strings.Split(line, "|")
			if len(cells) != 5 || !strings.Contains(cells[1], "`") {
				continue
			}
			for key := range strings.SplitSeq(cells[1], ",") {
				key = prefix + strings.Trim(key, " `")
				if _, twice := table[key]; twice {
					t.Errorf("docs/machines.md has %s twice", key)
				}
				table[key] = outcome(strings.TrimSpace(cells[2]))
			}
		}
	}
	return table
}

func TestEachKeyOfTheSpecificationIsInTheTable(t *testing.T) {
	table := documented(t)
	for key := range specified() {
		// The keys of a service have lines there, and other things of a project one at least.
		if names := strings.Split(key, "."); len(names) == 2 && names[0] == "services" || len(names) == 1 {
			at := table[key]
			for below, is := range table {
				if at == "" && strings.HasPrefix(below, key+".") {
					at = is
				}
			}
			if at == "" {
				t.Errorf("docs/machines.md does not say what becomes of %s", key)
			}
		}
	}
	for key, is := range table {
		if !specified()[key] && !strings.Contains(key, "x-") {
			t.Errorf("%s, which docs/machines.md has, is no key of the specification", key)
		}
		if is != isConverted && is != isNamed && is != isRefused {
			t.Errorf("%s is %q", key, is)
		}
	}
}
