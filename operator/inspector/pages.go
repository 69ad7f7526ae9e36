package inspector

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

//go:embed assets
var assets embed.FS

// templates are the pages: the layout with the content of each.
var templates = map[string]*template.Template{
	"overview": pageTemplate("overview.html"),
	"objects":  pageTemplate("objects.html"),
	"object":   pageTemplate("object.html"),
	"problem":  pageTemplate("problem.html"),
}

func pageTemplate(content string) *template.Template {
	return template.Must(template.New("layout.html").Funcs(functions).
		ParseFS(assets, "assets/layout.html", "assets/parts.html", "assets/graphs.html", "assets/"+content))
}

// assetTypes are the assets that browsers ask for, and their types.
var assetTypes = map[string]string{
	"style.css": "text/css; charset=utf-8",
	"script.js": "text/javascript; charset=utf-8",
	"icon.svg":  "image/svg+xml",
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	contentType, ok := assetTypes[name]
	data, err := assets.ReadFile("assets/" + name)
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	if name == "style.css" {
		data = append(data, graph.Style()...)
	}
	w.Header().Set("Content-Type", contentType)
	// A client that has gone needs no answer.
	_, _ = w.Write(data)
}

// page is what the layout shows.
type page struct {
	// Title is that of the content, and Tab the page in the navigation that it belongs to.
	Title, Tab string
	// Operator is the name of the operator.
	Operator string
	// Events is the stream that tells of changes of the page. It is empty for a page that does not change.
	Events string
	// Words are what is searched for.
	Words string
	// Content is what the template of the page shows.
	Content any
}

func (i *Inspector) show(w http.ResponseWriter, status int, name string, p page) {
	p.Operator = i.config.Name
	var b bytes.Buffer
	if err := templates[name].Execute(&b, p); err != nil {
		i.log("can't show a page", "page", name, "error", err.Error())
		http.Error(w, "the page can't be shown: the log of the operator says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_, _ = b.WriteTo(w)
}

func (i *Inspector) showProblem(w http.ResponseWriter, title string, err error) {
	i.show(w, statusOf(err), "problem", page{Title: title, Content: err.Error()})
}

func (i *Inspector) overviewPage(w http.ResponseWriter, r *http.Request) {
	i.show(w, http.StatusOK, "overview", page{Title: "Overview", Tab: "overview", Events: Path + "events", Content: i.overviewFor(r)})
}

// objectsContent is what the list of objects shows.
type objectsContent struct {
	ObjectList
	Frameworks []string
	States     []State
	// Framework and State are what is chosen.
	Framework string
	State     State
	// From and To number the objects shown, from 1. Previous and Next are the pages before and after, if any.
	From, To       int
	Previous, Next string
}

func (i *Inspector) objectsPage(w http.ResponseWriter, r *http.Request) {
	q, list, err := i.listFor(r)
	if err != nil {
		i.showProblem(w, "That can't be searched for", err)
		return
	}
	c := objectsContent{ObjectList: list, States: states, Framework: q.framework, State: q.state}
	for _, s := range i.frameworks() {
		c.Frameworks = append(c.Frameworks, s.framework.Name())
	}
	c.From, c.To = min(q.offset+1, c.Total), min(q.offset+len(c.Objects), c.Total)
	if q.offset > 0 {
		c.Previous = atOffset(r.Form, max(q.offset-q.limit, 0))
	}
	if c.To < c.Total {
		c.Next = atOffset(r.Form, q.offset+q.limit)
	}
	i.show(w, http.StatusOK, "objects", page{
		Title: "Objects", Tab: "objects", Events: Path + "events", Words: r.Form.Get("q"), Content: c,
	})
}

func atOffset(values url.Values, offset int) string {
	values.Set("offset", strconv.Itoa(offset))
	return Path + "objects?" + values.Encode()
}

// objectContent is what the page of an object shows.
type objectContent struct {
	Object
	// Planned tells that a plan was asked for: there is one, or it is said why not.
	Planned  bool
	Plan     *plan.Plan
	PlanFail string
	// Graphs is nil when there are none.
	Graphs *graphsContent
}

func (i *Inspector) objectPage(w http.ResponseWriter, r *http.Request) {
	i.showObject(w, r, idOf(r), http.StatusOK, objectContent{})
}

// planPage is the page of an object with its plan. It is not live: the plan is of one moment.
func (i *Inspector) planPage(w http.ResponseWriter, r *http.Request) {
	id, c, status := idOf(r), objectContent{Planned: true}, http.StatusOK
	var err error
	if c.Plan, err = i.plan(w, r, id); err != nil {
		c.PlanFail, status = err.Error(), statusOf(err)
	}
	i.showObject(w, r, id, status, c)
}

func (i *Inspector) showObject(w http.ResponseWriter, r *http.Request, id objectID, status int, c objectContent) {
	var err error
	if c.Object, err = i.find(r.Context(), id); err != nil {
		i.showProblem(w, "There is no such object", err)
		return
	}
	patience := graphPatience
	if r.Form.Get("wait") == "true" {
		patience = i.config.PlanTimeout
		takeLonger(w, r, patience)
	}
	c.Graphs = i.graphsContentOf(r.Context(), id, r.Form.Get("graph"), patience)
	p := page{Title: id.key.String(), Tab: "objects", Content: c}
	if id.key.Namespace == "" {
		p.Title = id.key.Name
	}
	if !c.Planned {
		p.Events = Path + "events?" + objectQuery(c.ObjectSummary)
	}
	i.show(w, status, "object", p)
}

// objectQuery names an object in the query of an address.
func objectQuery(s ObjectSummary) string {
	values := url.Values{"framework": {s.Framework}, "name": {s.Name}}
	if s.Namespace != "" {
		values.Set("namespace", s.Namespace)
	}
	return values.Encode()
}
